package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/serve"
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
	host, _, err := net.SplitHostPort(c.addr)
	if err == nil && !serve.Loopback(host) {
		err = fmt.Errorf("%.80q is not an address of this machine alone: use 127.0.0.1:PORT here, or quipu console, which asks for tokens", c.addr)
	}
	if err != nil {
		return nil, cli.Exit(cli.CodeUsage, fmt.Errorf("--console: %w", err))
	}
	local := access.Who{Name: cmp.Or(p.getenv("USER"), "console"), Role: access.Operator}
	h := serve.Site{
		Build: cli.Build(), Space: p.opts.space, Access: access.Config{Local: &local}, Logger: p.log,
	}.Handler(rt)
	s, err := serve.Listen(ctx, c.addr, nil, h, p.log)
	if errors.Is(err, syscall.EADDRINUSE) && !c.given {
		s, err = serve.Listen(ctx, "127.0.0.1:0", nil, h, p.log)
	}
	if err != nil {
		return nil, cli.Exit(cli.CodeUsage, fmt.Errorf("--console: %w", err))
	}
	c.url = s.URL()
	p.own.add(c.url)
	return s.Close, nil
}
