package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// Engine decides and commits the messages of a space.
type Engine struct {
	cfg       Config
	pub       *Publisher
	committer *Committer
	keeping   *keeping
	owns      bool // its Run runs the committer, too
}

// New makes an engine with a Committer of its own. Errors: ErrConfig, or the store's.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	c, err := NewCommitter(ctx, cfg)
	if err != nil {
		return nil, err
	}
	e, err := Over(c)
	if err != nil {
		return nil, err
	}
	e.owns = true
	return e, nil
}

// Over makes an engine over the process's committer, which somebody else runs.
func Over(c *Committer) (*Engine, error) {
	if c.pub == nil {
		return nil, fmt.Errorf("%w: an engine needs a Bus", ErrConfig)
	}
	return &Engine{cfg: c.cfg, pub: c.pub, committer: c, keeping: newKeeping(c.cfg.AckWait / 3)}, nil
}

// Committer returns the committer of the engine.
func (e *Engine) Committer() *Committer { return e.committer }

// Publisher returns the publisher of the engine; a starter shares it.
func (e *Engine) Publisher() *Publisher { return e.pub }

// Config returns the configuration with its defaults.
func (e *Engine) Config() Config { return e.cfg }

// Run handles messages until ctx ends. Then it hands back what was fetched and not begun. If
// the engine owns the committer, Run also finishes its batches; otherwise the committer's own
// Run does.
func (e *Engine) Run(ctx context.Context) error {
	_ = reserve()
	switch err := e.cfg.Bus.Ensure(ctx); {
	case err == nil:
	case ctx.Err() != nil:
		return nil // ctx ended during the start
	case errors.Is(err, transport.ErrUnavailable):
		e.cfg.Logger.Warn("the streams cannot be made yet; whoever fetches from one makes it", "error", err)
	default:
		return fmt.Errorf("ensure the streams of space %s: %w", e.cfg.Space, err)
	}
	committing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	committed := make(chan error, 1)
	if e.owns {
		go func() { committed <- e.committer.Run(committing) }()
	} else {
		committed <- nil
	}
	defer e.keeping.end()
	err := e.fetch(ctx)
	e.drain()
	stop()
	return errors.Join(err, <-committed)
}

// fetch feeds the committer and sweeps, until ctx ends.
func (e *Engine) fetch(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	loops := e.committer.loops
	for lane := range e.cfg.Lanes {
		into := loops[lane%len(loops)].lanes
		g.Go(func() error {
			return e.consume(ctx, transport.ToLane(lane), e.cfg.LaneSlots, func(transport.Delivery) chan fetched {
				return into
			})
		})
	}
	g.Go(func() error {
		return e.consume(ctx, transport.ToStart(), e.cfg.StartSlots, func(d transport.Delivery) chan fetched {
			return loops[e.ownerOf(d)].starts
		})
	})
	e.pub.refused.sweptBy(e.committer.alarm)
	defer e.pub.refused.sweptBy(nil)
	g.Go(func() error { return (&sweeper{e: e}).run(ctx) })
	g.Go(func() error { return e.listen(ctx) })
	for _, c := range e.chores() {
		g.Go(func() error { return c.run(ctx) })
	}
	if err := g.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// listen wakes the sweeper when a commit announces that something is due, until ctx ends. While
// the database cannot be reached nothing is announced.
func (e *Engine) listen(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		err := e.cfg.Store.Announced(ctx, func() { n = 0; e.committer.alarm.ring() })
		if ctx.Err() == nil {
			e.cfg.Logger.Debug("announcements are not heard; what is due is found by looking", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Delay(n, time.Second, 30*time.Second, e.cfg.Jitter)):
		}
	}
	return nil
}

// fetched is a delivery on its way to the committer.
type fetched struct {
	transport.Delivery
	stop <-chan struct{} // closed when its engine shall stop (T10)
}

// consume feeds the deliveries of one destination to their loop. A busy loop holds the consumer
// back (T11).
func (e *Engine) consume(
	ctx context.Context, from transport.Destination, slots int, to func(transport.Delivery) chan fetched,
) error {
	return e.cfg.Bus.Consume(ctx, from, slots, func(d transport.Delivery) {
		d = e.keeping.add(d)
		select {
		case to(d) <- fetched{d, ctx.Done()}:
		case <-ctx.Done():
			_ = d.Nak(transport.MinNakDelay)
		}
	})
}

// ownerOf is the loop that serves the job's lane, so that all messages of a job go through one
// loop from its start on.
func (e *Engine) ownerOf(d transport.Delivery) int {
	if d.Err() != nil {
		return 0
	}
	return e.committer.loopOf(journal.JobID(d.Message().Header.GUID))
}

// drain hands back what the loops did not take.
func (e *Engine) drain() {
	for _, l := range e.committer.loops {
		for _, ch := range []chan fetched{l.lanes, l.starts} {
			for more := true; more; {
				select {
				case d := <-ch:
					_ = d.Nak(transport.MinNakDelay)
				default:
					more = false
				}
			}
		}
	}
}

// sweepLimit is how many due rows one look takes.
const sweepLimit = store.MaxSweep
