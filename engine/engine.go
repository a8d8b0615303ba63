package engine

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/wire"
)

// Engine decides and commits the messages of a space.
type Engine struct {
	cfg Config
	pub *Publisher
}

// New checks the configuration and reads the space's epoch.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	epoch, err := cfg.Store.Epoch(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the epoch of space %s: %w", cfg.Space, err)
	}
	return &Engine{cfg: cfg, pub: &Publisher{
		Bus: cfg.Bus, Flows: NewFlows(cfg.Store), Space: cfg.Space, Lanes: cfg.Lanes, Epoch: epoch,
	}}, nil
}

// Publisher is what the engine publishes with; a starter shares it.
func (e *Engine) Publisher() *Publisher { return e.pub }

// Config returns the configuration with its defaults filled in.
func (e *Engine) Config() Config { return e.cfg }

// Run handles messages until ctx ends, then finishes the batches under way and
// hands back what was fetched beyond them. It returns nil when it was drained.
func (e *Engine) Run(ctx context.Context) error {
	switch err := e.cfg.Bus.Ensure(ctx); {
	case err == nil:
	case ctx.Err() != nil:
		return nil // ended while it started
	case errors.Is(err, transport.ErrUnavailable):
		e.cfg.Logger.Warn("the streams cannot be made yet; whoever fetches from one makes it", "error", err)
	default:
		return fmt.Errorf("ensure the streams of space %s: %w", e.cfg.Space, err)
	}
	committers := make([]*committer, e.cfg.Committers)
	g, ctx := errgroup.WithContext(ctx)
	for i := range committers {
		c := &committer{
			cfg: &e.cfg, mode: e.cfg.Mode(), flows: e.pub.Flows, pub: e.pub, log: e.cfg.Logger,
			lanes:  make(chan transport.Delivery, e.cfg.MaxBatch),
			starts: make(chan transport.Delivery, e.cfg.MaxBatch/2+1),
		}
		committers[i] = c
		g.Go(func() error { return c.run(ctx) })
	}
	for lane := range e.cfg.Lanes {
		into := committers[lane%len(committers)].lanes
		g.Go(func() error {
			return e.consume(ctx, transport.ToLane(lane), e.cfg.LaneSlots, func(transport.Delivery) chan transport.Delivery { return into })
		})
	}
	g.Go(func() error {
		return e.consume(ctx, transport.ToStart(), e.cfg.StartSlots, func(d transport.Delivery) chan transport.Delivery {
			return committers[e.ownerOf(d, len(committers))].starts
		})
	})
	g.Go(func() error { return (&sweeper{e: e}).run(ctx) })
	for _, c := range e.chores() {
		g.Go(func() error { return c.run(ctx) })
	}
	err := g.Wait()
	e.drain(committers)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// consume feeds the deliveries of one destination to their committer, which
// holds the consumer back when it is busy (T11).
func (e *Engine) consume(ctx context.Context, from transport.Destination, slots int, to func(transport.Delivery) chan transport.Delivery) error {
	return e.cfg.Bus.Consume(ctx, from, slots, func(d transport.Delivery) {
		select {
		case to(d) <- d:
		case <-ctx.Done():
			_ = d.Nak(transport.MinNakDelay)
		}
	})
}

// ownerOf is the committer that serves the job's lane, so that a job's messages
// meet in one committer from the first on.
func (e *Engine) ownerOf(d transport.Delivery, committers int) int {
	if d.Err() != nil {
		return 0
	}
	return wire.LaneOf(journal.JobID(d.Message().Header.GUID), e.cfg.Lanes) % committers
}

// drain hands back what the committers did not take any more.
func (e *Engine) drain(committers []*committer) {
	for _, c := range committers {
		for _, ch := range []chan transport.Delivery{c.lanes, c.starts} {
			for len(ch) > 0 {
				_ = (<-ch).Nak(transport.MinNakDelay)
			}
		}
	}
}

// sweepLimit is how many due rows one look takes.
const sweepLimit = store.MaxSweep
