package process

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
	p       *Process
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
	p := w.p
	engine := p.Bus != nil && slices.Contains(p.cfg.Roles, RoleEngine) && p.Decides() // by its login, too (S8)
	var left []leftMark
	var newest store.Mark
	if engine {
		left = w.read(ctx) // before the look: the database may be newer, never older
		if at := newestMark(left, p.Keys.Ring().Space()); at >= 0 {
			newest = left[at].mark
		}
	}
	got, err := p.Store.Watch(ctx, engine, newest)
	if err != nil {
		return err
	}
	if w.looked && got.Chain != w.chain {
		p.Keys.Look()
	}
	if w.looks++; w.looked && (got.Chain != w.chain || w.looks%rightsEvery == 0) {
		if w.lost, err = p.withdraw(ctx, w.lost); err != nil {
			return err
		}
	}
	w.looked, w.chain = true, got.Chain
	if got.Accepted {
		p.cfg.Logger.Warn("the space goes on in the database that was accepted", "space", p.cfg.Space, "epoch", got.Mark.Epoch)
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
func (p *Process) accepted(epoch int64) {
	p.Committer.Recovered(epoch)
	p.session.GiveUp()
	p.Keys.Forget()
}

// note tells people what a look found.
func (w *watcher) note(ctx context.Context, err error) {
	p := w.p
	if !errors.Is(err, store.ErrAnotherDatabase) { // a process that only met it in passing is still to give up
		if elsewhere := p.Store.Another(); elsewhere != nil {
			err = elsewhere
		}
	}
	another := errors.Is(err, store.ErrAnotherDatabase)
	switch {
	case another && !w.found:
		p.session.GiveUp()
		p.cfg.Observer.Count(observer.MetricAnother, 1)
		p.cfg.Logger.Error("this process takes no work", "space", p.cfg.Space, "error", err)
	case err != nil && !another && !w.failing && ctx.Err() == nil:
		p.cfg.Logger.Warn("which database this is cannot be looked at; it is tried again", "error", err)
	}
	w.found, w.failing = another, err != nil && !another
}

// elsewhere says that the process takes no work, because the database is another one.
func (p *Process) elsewhere() error {
	if err := p.Store.Another(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return nil
}
