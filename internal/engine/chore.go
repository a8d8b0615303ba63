package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Times of chores.
const (
	// pruneEvery is how often the markers of ended sessions, and old records of signals and
	// keys, are removed (J4).
	pruneEvery = time.Hour
	// expireEvery is the pause between two looks for signals and jobs whose time has passed.
	expireEvery = time.Minute
	// extendEvery is the pause between two looks for room for new jobs.
	extendEvery = time.Minute
	// choreFirst bounds the time until the first run. That is not at once, because a process
	// that starts has work that somebody waits for.
	choreFirst = 10 * time.Second
	// choreMore is the least pause when one call did not finish a chore. It is choreRest times as
	// long as the call took, if that is longer: a database that has much to do gets less of it.
	choreMore = 100 * time.Millisecond
	choreRest = 2
	// choreLimit bounds the rows of one call.
	choreLimit = store.MaxSweep
)

// chore is upkeep that nobody waits for. It has its own loop, so that its deletions delay no
// timer and its failures delay no message.
type chore struct {
	name  string
	first time.Duration // when it runs first, at the latest
	every time.Duration
	// once does a bounded part; more says that there is more to do.
	once   func(ctx context.Context) (more bool, err error)
	log    *slog.Logger
	jitter func(below time.Duration) time.Duration
}

// run repeats the chore until ctx ends. It logs the first error of a series only.
func (c *chore) run(ctx context.Context) error {
	failing := false
	for wait := c.jitter(c.first + 1); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		began := time.Now()
		more, err := c.once(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failing:
			c.log.Warn(c.name+" fails; it is tried again from time to time", "error", err)
		case err == nil && failing:
			c.log.Info(c.name + " succeeds again")
		}
		failing = err != nil
		wait = c.every
		if more && err == nil {
			wait = max(choreMore, choreRest*time.Since(began))
		}
		wait += c.jitter(wait/5+1) - wait/10
	}
}

// roomName names the chore of engines and of retention that makes partitions.
const roomName = "making room for new jobs"

// chores are the chores of every engine.
func (e *Engine) chores() []*chore {
	st := e.cfg.Store
	full := func(do func(context.Context, int) (int, error)) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			n, err := do(ctx, choreLimit)
			return n >= choreLimit, err
		}
	}
	extend := func(ctx context.Context) (bool, error) { return false, st.Extend(ctx) }
	all := []*chore{
		{name: "pruning", every: pruneEvery, once: full(st.Prune)},
		{name: "the expiry of kept signals", every: expireEvery, once: full(e.expireSignals)},
		{name: roomName, every: extendEvery, once: extend},
		{name: "removing requests whose rows are gone from the bus", every: removeStaleEvery, once: e.removeStale},
	}
	for _, c := range all {
		c.first, c.log, c.jitter = choreFirst, e.cfg.Logger, e.cfg.Jitter
	}
	return all
}

// expireSignals ends at most limit kept signals whose time has passed, and returns how many it
// found.
func (e *Engine) expireSignals(ctx context.Context, limit int) (int, error) {
	late, err := e.cfg.Store.Late(ctx, journal.MessageSignal, limit)
	if err != nil {
		return 0, err
	}
	return len(late), e.committer.lapse(ctx, late)
}
