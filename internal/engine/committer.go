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
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// maxCalls bounds the waiting calls of this process. Beyond it callers wait to be let in (T11).
const maxCalls = 4096

// Committer is a process's one way into the journal (W3): deliveries, starts and all other
// commits go through its loops, each on a connection of its own. While one batch commits the
// next gathers, so an idle process commits a single item at once, and a busy one hundreds
// together. Its methods are safe for concurrent use while Run runs.
type Committer struct {
	cfg   Config
	mode  collation.Mode
	flows *Flows
	pub   *Publisher // nil without a bus: the sweepers of other processes send the rows
	log   *slog.Logger
	calls chan *call // from callers
	loops []*loop
	aside *aside // patient
	sort  *aside // finds out what has to wait
	cache *cache
	clock clock
	alarm *alarm        // wakes this process's sweeper
	opens chan struct{} // capacity 1: a transaction has begun, for the watch
	// returning counts taken requests that are being handed back (W7).
	returning sync.WaitGroup
	// floor is the highest floor of generations that this process has seen (W11).
	floor  atomic.Int64
	ending atomic.Bool   // Run shall end
	gone   chan struct{} // closed when Run has carried its last call
}

// NewCommitter checks the configuration. Without a Bus the committed rows are due at once, for
// the sweepers of other processes. Errors: ErrConfig, or the store's.
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
		alarm: newAlarm(), opens: make(chan struct{}, 1),
	}
	if cfg.Bus != nil {
		epoch, err := cfg.Store.Epoch(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the epoch of space %s: %w", cfg.Space, err)
		}
		c.pub = &Publisher{Bus: cfg.Bus, Flows: c.flows, Space: cfg.Space, Lanes: cfg.Lanes, Observer: cfg.Observer}
		c.pub.Epoch.Store(epoch)
	}
	for range cfg.Committers {
		c.loops = append(c.loops, &loop{
			Committer: c,
			lanes:     make(chan fetched, cfg.MaxBatch),
			starts:    make(chan fetched, cfg.MaxBatch/2+1),
			own:       make(chan *call, maxCalls),
		})
	}
	c.aside, c.sort = newAside(c, cfg.Aside, policyWait), newAside(c, cfg.Committers, policySort)
	c.cache = newCache(cfg.HotBytes)
	return c, nil
}

// Config returns the configuration with its defaults.
func (c *Committer) Config() Config { return c.cfg }

// Publisher is what the committer publishes with; nil without a bus.
func (c *Committer) Publisher() *Publisher { return c.pub }

// Flows are the compiled flows of the space.
func (c *Committer) Flows() *Flows { return c.flows }

// Run commits until ctx ends. Then it carries what was queued by then, unless that has to wait for
// other transactions, and refuses all other calls.
func (c *Committer) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { c.ending.Store(true); c.aside.refuse() })()
	var g errgroup.Group
	for _, l := range c.loops {
		g.Go(func() error { return l.run(ctx) })
	}
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	var watcher errgroup.Group
	watcher.Go(func() error { return c.watch(watching) })
	err := g.Wait()
	c.sort.close()
	c.aside.close()
	unwatch()
	err = errors.Join(err, watcher.Wait())
	c.returning.Wait()
	close(c.gone)
	refuse(c.calls)
	for _, l := range c.loops {
		refuse(l.own)
	}
	return err
}

// loopOf is the loop that serves the lane of a job or a mailbox. All work of one of them goes
// through it, so that two loops do not meet at its lock.
func (c *Committer) loopOf(id journal.JobID) int { return wire.LaneOf(id, c.cfg.Lanes) % len(c.loops) }

// refuse ends the calls that nobody will take.
func refuse(calls chan *call) {
	for {
		select {
		case x := <-calls:
			if x.take() {
				x.end(errEnded)
			}
		default:
			return
		}
	}
}

// errEnded answers a call that came after the committer had stopped.
var errEnded = fmt.Errorf("%w: %w", store.Unavailable("nothing was done"), ErrClosed)

// epoch is that of the space (T4); 0 without a bus.
func (c *Committer) epoch() int64 {
	if c.pub == nil {
		return 0
	}
	return c.pub.Epoch.Load()
}

// Recovered says that the space goes on in another database, in a new epoch (S13). What this
// process has read before counts no more, and messages of other epochs do nothing (T4).
func (c *Committer) Recovered(epoch int64) {
	c.cache.clear()
	c.flows.reset()
	if c.pub != nil {
		c.pub.Epoch.Store(epoch)
	}
}

// publishes reports whether this process publishes what it commits now. Otherwise the rows are
// due at once, for the engines' sweepers.
func (c *Committer) publishes() bool { return c.pub != nil && c.pub.Bus.Connected() }

// refused reports whether the store would answer the same again: it does not take the data, or
// the test-and-set is lost however often it is decided again. A single such message is held
// (J4, C10).
func refused(err error) bool {
	return errors.Is(err, store.ErrRejected) || errors.Is(err, store.ErrLost)
}
