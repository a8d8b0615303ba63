package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/quipu-journal/quipu/journal/store"
)

// Times of chores.
const (
	// pruneEvery is how often ended sessions' markers, and the records of old
	// signals and keys, are removed (J4).
	pruneEvery = time.Hour
	// expireEvery is how often it is looked for signals and jobs whose time has
	// passed.
	expireEvery = time.Minute
	// extendEvery is how often it is looked whether there is room for new jobs.
	extendEvery = time.Minute
	// choreFirst bounds when an engine does them first: not at once, for a process that
	// starts has work that somebody waits for.
	choreFirst = 10 * time.Second
	// choreMore is the pause before the rest of a chore that one call did not end.
	choreMore = 100 * time.Millisecond
	// choreLimit bounds the rows of one call.
	choreLimit = store.MaxSweep
)

// chore is upkeep that nobody waits for. It has a loop of its own, so that its
// deletions never hold up a timer and its failure never holds up a message.
type chore struct {
	name  string
	first time.Duration // when it is done first, at the latest
	every time.Duration
	// once does a bounded part; more says that there is more of it.
	once   func(ctx context.Context) (more bool, err error)
	log    *slog.Logger
	jitter func(below time.Duration) time.Duration
}

// run does the chore until ctx ends. An error is said once, not each time.
func (c *chore) run(ctx context.Context) error {
	failing := false
	for wait := c.jitter(c.first + 1); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
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
			wait = choreMore
		}
		wait += c.jitter(wait/5+1) - wait/10
	}
}

// chores are what every engine does.
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
		{name: "making room for new jobs", every: extendEvery, once: extend},
	}
	for _, c := range all {
		c.first, c.log, c.jitter = choreFirst, e.cfg.Logger, e.cfg.Jitter
	}
	return all
}

// expireSignals ends kept signals whose time has passed, at most limit; it returns how
// many there were.
func (e *Engine) expireSignals(ctx context.Context, limit int) (int, error) {
	late, err := e.cfg.Store.LateSignals(ctx, limit)
	if err != nil {
		return 0, err
	}
	return len(late), e.committer.lapse(ctx, late)
}
