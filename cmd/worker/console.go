package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/serve"
	"github.com/quipu-journal/quipu/console"
)

// consoleAddr is where worker dev serves the console unless something else has the port.
const consoleAddr = "127.0.0.1:8400"

// webConsole is the console of worker dev (O6); without an address there is none.
type webConsole struct {
	addr  string
	given bool // by who runs it: then no other port is taken
	url   string
}

// openConsole serves the console of the space, and returns what ends it.
func (p *process) openConsole(ctx context.Context, rt *quipu.Runtime) (end func() error, err error) {
	c := &p.console
	if c.addr == "" {
		return func() error { return nil }, nil
	}
	user := p.getenv("USER")
	h := console.New(rt, console.Config{Build: cli.Build(), Space: p.opts.space, Who: cmp.Or(user, "console"), Logger: p.log})
	s, err := serve.Loopback(ctx, c.addr, h)
	if errors.Is(err, syscall.EADDRINUSE) && !c.given {
		s, err = serve.Loopback(ctx, "127.0.0.1:0", h)
	}
	if err != nil {
		return nil, cli.Exit(cli.CodeUsage, fmt.Errorf("--console: %w", err))
	}
	c.url = s.URL()
	return s.Close, nil
}
