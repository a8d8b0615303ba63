package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/backoff"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/transport"
)

const (
	// defaultWait is how long the servers may take to be there at start.
	defaultWait = time.Minute
	// firstPause doubles up to longestPause between two tries to connect.
	firstPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second
)

// open makes the process ready to take work. Servers that are away are waited
// for: whoever starts everything at once, or restarts a database, has no order to
// keep.
func (p *process) open(ctx context.Context, cfg quipu.Config) (*quipu.Runtime, error) {
	began := time.Now()
	for tries := 0; ; tries++ {
		rt, err := p.connect(ctx, cfg)
		if err == nil || p.opts.wait == 0 || !away(err) || ctx.Err() != nil {
			return rt, err
		}
		left := p.opts.wait - time.Since(began)
		if left <= 0 {
			return nil, fmt.Errorf("a server was away for %s (--wait): %w", time.Since(began).Round(time.Millisecond), err)
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

// away says that a server could not be reached, as far as that can be told from a
// fault that stays.
func away(err error) bool {
	return cli.Code(err) == cli.CodeFailed && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, transport.ErrUnavailable))
}

// connect checks the servers, opens the runtime and deploys the flows.
func (p *process) connect(ctx context.Context, cfg quipu.Config) (_ *quipu.Runtime, err error) {
	if cfg.NATS != "" {
		if err := p.preflightNATS(ctx, cfg); err != nil {
			return nil, err
		}
	}
	rt, err := quipu.Open(ctx, cfg)
	if errors.Is(err, quipu.ErrConfig) {
		return nil, cli.Exit(cli.CodeUsage, err)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			rt.Close()
		}
	}()
	if err := p.preflightPostgres(ctx, rt); err != nil {
		return nil, err
	}
	return rt, deployFlows(ctx, rt.Store(), p.flows, p.log)
}
