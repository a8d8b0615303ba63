package quipu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
)

// ErrAnotherDatabase says that the server was promoted, or the database restored to an older
// point, since the process knows the space (S13). It is an ErrUnavailable: nothing is decided,
// started or leased until somebody accepts the database with `quipu recover`, or, for a promotion
// without a loss, has done so beforehand. Then a running process goes on by itself.
var ErrAnotherDatabase = store.ErrAnotherDatabase

const (
	// watchEvery is the time between two looks at which database this is.
	watchEvery = time.Second
	// rightsEvery is the number of looks between two at the topics of the login. One that sees that the
	// space's own chain has grown looks at once: `quipu revoke` writes there.
	rightsEvery = 20
	// watchTime bounds one look.
	watchTime = 5 * time.Second
)

// watcher compares the database with what this process, the space and NATS know of it (S13).
type watcher struct {
	rt      *Runtime
	found   bool // that it is another one, and nobody has accepted it yet
	failing bool // the last look failed for another reason
	looked  bool // once at least
	chain   int64
	looks   int      // how often it has looked
	lost    []string // topics that the login has lost
	seen    marksSeen
}

// run looks once a second until ctx ends.
func (w *watcher) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchEvery):
		}
		w.note(ctx, w.look(ctx))
	}
}

// look compares once. An engine also raises the beat of the space, and leaves it in NATS.
func (w *watcher) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	rt := w.rt
	engine := rt.bus != nil && slices.Contains(rt.cfg.Roles, RoleEngine) && rt.decides() // by its login, too (S8)
	var left []leftMark
	var newest store.Mark
	if engine {
		left = w.read(ctx) // before the look: the database may be newer, never older
		if at := newestMark(left, rt.keys.Ring().Space()); at >= 0 {
			newest = left[at].mark
		}
	}
	got, err := rt.store.Watch(ctx, engine, newest)
	if err != nil {
		return err
	}
	if w.looked && got.Chain != w.chain {
		rt.keys.Look()
	}
	if w.looks++; w.looked && (got.Chain != w.chain || w.looks%rightsEvery == 0) {
		if w.lost, err = rt.withdraw(ctx, w.lost); err != nil {
			return err
		}
	}
	w.looked, w.chain = true, got.Chain
	if got.Accepted {
		rt.cfg.Logger.Warn("the space goes on in the database that was accepted", "space", rt.cfg.Space, "epoch", got.Mark.Epoch)
	}
	if engine {
		w.leave(ctx, got.Mark, left)
	}
	return nil
}

// level is that of a look that NATS does not help: loud where somebody else has written there, and
// not because the process ends.
func (w *watcher) level(ctx context.Context, err error) slog.Level {
	if ctx.Err() != nil || errors.Is(err, transport.ErrUnavailable) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// accepted goes on in another database, before anything is read there.
func (rt *Runtime) accepted(epoch int64) {
	rt.committer.Recovered(epoch)
	rt.session.GiveUp()
	rt.keys.Forget()
}

// note tells people what a look found.
func (w *watcher) note(ctx context.Context, err error) {
	rt := w.rt
	if !errors.Is(err, ErrAnotherDatabase) { // a process that only met it in passing is still to give up
		if elsewhere := rt.store.Another(); elsewhere != nil {
			err = elsewhere
		}
	}
	another := errors.Is(err, ErrAnotherDatabase)
	switch {
	case another && !w.found:
		rt.session.GiveUp()
		rt.cfg.Observer.Count(observer.MetricAnother, 1)
		rt.cfg.Logger.Error("this process takes no work", "space", rt.cfg.Space, "error", err)
	case err != nil && !another && !w.failing && ctx.Err() == nil:
		rt.cfg.Logger.Warn("which database this is cannot be looked at; it is tried again", "error", err)
	}
	w.found, w.failing = another, err != nil && !another
}

// elsewhere says that the process takes no work, because the database is another one.
func (rt *Runtime) elsewhere() error {
	if err := rt.store.Another(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return nil
}
