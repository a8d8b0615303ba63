package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// maxCalls bounds the calls of this process that wait for a transaction; past it
// callers wait to be let in (T11).
const maxCalls = 4096

// Committer is the one way into the journal of a process (W3): deliveries, starts
// and whatever else is to be committed go through its loops, each on a connection
// of its own. While one batch commits the next gathers, so that an idle process
// commits a single item at once and a busy one hundreds together. Its methods are
// safe for concurrent use, while Run runs.
type Committer struct {
	cfg   Config
	mode  collation.Mode
	flows *Flows
	pub   *Publisher // nil without a bus: rows are left to the sweepers of others
	log   *slog.Logger
	calls chan *call // of callers
	loops []*loop
	aside *aside
	hot   *hot
	alarm *alarm // of the sweeper of this process
	// returning are requests that were taken and are handed back (W7).
	returning sync.WaitGroup
	// floor is the floor of generations as this process saw it last (W11): it only rises.
	floor atomic.Int64
	gone  chan struct{} // closed when Run has returned
}

// NewCommitter checks the configuration. Without a Bus what is committed is due at
// once, for the sweepers of other processes.
func NewCommitter(ctx context.Context, cfg Config) (*Committer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.Flows == nil {
		cfg.Flows = NewFlows(cfg.Store)
	}
	c := &Committer{
		cfg: cfg, mode: cfg.Mode(), flows: cfg.Flows, log: cfg.Logger,
		calls: make(chan *call, maxCalls), gone: make(chan struct{}),
		alarm: newAlarm(),
	}
	if cfg.Bus != nil {
		epoch, err := cfg.Store.Epoch(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the epoch of space %s: %w", cfg.Space, err)
		}
		c.pub = &Publisher{Bus: cfg.Bus, Flows: c.flows, Space: cfg.Space, Lanes: cfg.Lanes, Epoch: epoch}
	}
	for range cfg.Committers {
		c.loops = append(c.loops, &loop{
			Committer: c,
			lanes:     make(chan fetched, cfg.MaxBatch),
			starts:    make(chan fetched, cfg.MaxBatch/2+1),
			own:       make(chan *call, maxCalls),
		})
	}
	c.aside, c.hot = newAside(c), newHot(cfg.HotBytes)
	return c, nil
}

// Config returns the configuration with its defaults filled in.
func (c *Committer) Config() Config { return c.cfg }

// Publisher is what the committer publishes with; nil without a bus.
func (c *Committer) Publisher() *Publisher { return c.pub }

// Flows are the compiled flows of the space.
func (c *Committer) Flows() *Flows { return c.flows }

// Run commits what comes until ctx ends; what is under way is finished, and calls
// that were not begun are refused.
func (c *Committer) Run(ctx context.Context) error {
	defer close(c.gone)
	var g errgroup.Group
	for _, l := range c.loops {
		g.Go(func() error { return l.run(ctx) })
	}
	err := g.Wait()
	c.aside.close()
	c.returning.Wait()
	refuse(c.calls)
	for _, l := range c.loops {
		refuse(l.own)
	}
	return err
}

// loopOf is the loop that serves the lane of a job, or of a mailbox: what concerns
// one of them meets there, and not a lock that the other loop holds.
func (c *Committer) loopOf(id journal.JobID) int { return wire.LaneOf(id, c.cfg.Lanes) % len(c.loops) }

// refuse ends the calls that nobody takes any more.
func refuse(calls chan *call) {
	for {
		select {
		case x := <-calls:
			x.end(errEnded)
		default:
			return
		}
	}
}

// errEnded is what a call hears that came when the committer had stopped.
var errEnded = fmt.Errorf("%w: %w", store.Unavailable("nothing was done"), ErrClosed)

// publishes says whether this process publishes what it commits now. Otherwise it
// is due at once, for the engines' sweepers.
func (c *Committer) publishes() bool { return c.pub != nil && c.pub.Bus.Connected() }

// refused reports that the store has answered and would answer so again: data
// that it does not take, or a test-and-set that is lost however often it is
// decided anew. One message by itself is then held (J4, C10).
func refused(err error) bool {
	return errors.Is(err, store.ErrRejected) || errors.Is(err, store.ErrLost)
}
