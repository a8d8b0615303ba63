package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
)

const (
	// defaultWait is how long start waits for the servers.
	defaultWait = time.Minute
	// firstPause is the first pause between two tries to connect; it doubles up to longestPause.
	firstPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second
)

// open connects and makes the process ready to take work. It waits for servers that are away, so
// that processes and servers can be started in any order.
func (p *process) open(ctx context.Context, cfg quipu.Config) (*quipu.Runtime, error) {
	if p.opts.wait == 0 {
		return p.connect(ctx, cfg)
	}
	until := time.Now().Add(p.opts.wait)
	var last error
	for tries := 0; ; tries++ {
		try, cancel := context.WithDeadline(ctx, until)
		rt, err := p.connect(try, cfg)
		late := try.Err() != nil
		cancel()
		switch {
		case err == nil || ctx.Err() != nil || !late && !away(err):
			return rt, err
		case !late || last == nil: // an attempt that was cut short knows less
			last = err
		}
		left := time.Until(until)
		if late || left <= 0 {
			return nil, fmt.Errorf("after %s (--wait): %w", p.opts.wait, last)
		}
		pause := min(backoff.Delay(tries, firstPause, longestPause, rand.N[time.Duration]), left)
		p.log.Warn("a server is away: waits for it", "again_in", pause, "at_most", left.Round(time.Millisecond), "error", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// away says that a server could not be reached, as opposed to a fault that will stay, such as a
// wrong password or database.
func away(err error) bool {
	if errors.Is(err, store.ErrLogin) {
		return false
	}
	return cli.Code(err) == cli.CodeFailed &&
		(errors.Is(err, store.ErrUnavailable) || errors.Is(err, transport.ErrUnavailable))
}

// connect opens the runtime, which checks the servers, and deploys the flows.
func (p *process) connect(ctx context.Context, cfg quipu.Config) (_ *quipu.Runtime, err error) {
	rt, err := quipu.Open(ctx, cfg)
	switch {
	case errors.Is(err, quipu.ErrConfig):
		return nil, cli.Configuration(err)
	case errors.Is(err, quipu.ErrPreflight):
		return nil, cli.Exit(codePreflight, err)
	case err != nil:
		return nil, err
	}
	defer func() {
		if err != nil {
			rt.Close()
		}
	}()
	return rt, p.deployFlows(ctx, rt)
}
