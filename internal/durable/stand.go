package durable

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// stand lets the goroutine of a suspended function stay where it waits, so that the next
// run of the request goes on there and not from the top (Config.Stands). It is a
// shortcut in memory: what is recorded, and when, is the same.
type stand struct {
	ctx  *lasting
	at   chan struct{}     // is sent to when the function stands
	came chan *store.Pause // what its wait brought; closed: nobody goes on with it
	seen int               // pauses that have come by the run
	is   bool              // it stands; guarded by walk.mu
}

// lasting is the function's context where runs go on with each other. It ends with the
// run that is under way, whose values it has.
type lasting struct {
	context.Context // ends when a run does
	end             context.CancelCauseFunc
	run             atomic.Pointer[context.Context]
	leave           func() bool
}

func newStand(seen int) *stand {
	ctx, end := context.WithCancelCause(context.Background())
	return &stand{
		ctx: &lasting{Context: ctx, end: end}, at: make(chan struct{}), came: make(chan *store.Pause, 1), seen: seen,
	}
}

// cameOf is how many of the pauses have come: they are listed first.
func cameOf(pauses []store.Pause) int {
	open := slices.IndexFunc(pauses, func(p store.Pause) bool { return p.Response == nil })
	if open < 0 {
		return len(pauses)
	}
	return open
}

// follow makes ctx, of a run that begins, the one that is under way.
func (l *lasting) follow(ctx context.Context) {
	l.run.Store(&ctx)
	l.leave = context.AfterFunc(ctx, func() { l.end(context.Cause(ctx)) })
}

// Deadline implements context.Context.
func (l *lasting) Deadline() (time.Time, bool) { return (*l.run.Load()).Deadline() }

// Value implements context.Context.
func (l *lasting) Value(key any) any {
	if v := l.Context.Value(key); v != nil { // for package context, which looks for its own
		return v
	}
	return (*l.run.Load()).Value(key)
}

// stay lets the function stand at its only wait, and returns what that brought. It is nil
// where the function has to end: it cannot stand here, or nobody goes on with it.
func (w *walk) stay(b *branch) *store.Pause {
	s := w.stand
	if s == nil {
		return nil
	}
	w.mu.Lock()
	s.is = b == w.main && w.live == 1 && len(w.named) == 1 && !w.given
	stands := s.is
	w.mu.Unlock()
	if !stands {
		return nil
	}
	s.at <- struct{}{}
	return <-s.came
}

// await waits until the function has ended, or stands. A run that has ended while the
// function came to its wait is not gone on with.
func (w *walk) await() {
	s := w.stand
	if s == nil {
		<-w.main.ended
		return
	}
	select {
	case <-w.main.ended:
	case <-s.at:
		if !s.ctx.leave() {
			_ = w.drop()
			<-w.main.ended
		}
	}
}

// drop lets a function that stands end, and says whether it stood.
func (w *walk) drop() (dropped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stand
	if s == nil || !s.is {
		return false
	}
	s.is = false
	close(s.came)
	return true
}

// Stands reports that the function stands at its wait after Run or GoOn: GoOn of the next
// run's Function may go on with it. Its owner calls Drop if none does.
func (f *Function) Stands() bool {
	w := f.walking()
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stand != nil && w.stand.is
}

// Drop ends the goroutine of a function that stands, as a wait without Config.Stands does
// at once. It returns when the function's deferred calls have, at the latest after
// Config.Grace. A function that does not stand is left alone.
func (f *Function) Drop() {
	w := f.walking()
	if w == nil || !w.drop() {
		return
	}
	select {
	case <-w.main.ended:
	case <-time.After(f.cfg.Grace):
	}
	w.stand.ctx.end(context.Canceled)
}

// GoOn goes on where from, the function of the turn before, stands, in place of Load and
// Run. It reads what is recorded of waits, one round trip. If that is not what from has
// come by and the one wait at which it stands, or if another run has had the request in
// between, from is dropped, and ok is false: the function has to run from its top.
func (f *Function) GoOn(ctx context.Context, from *Function) (end Ending, ok bool) {
	w := from.walking()
	var p *store.Pause
	if f.session.Follows(from.session) {
		p = f.next(ctx, w)
	}
	if p == nil {
		from.Drop()
		return end, false
	}
	f.session.GoOn(from.session)
	f.mu.Lock()
	f.walk = w
	f.mu.Unlock()
	w.mu.Lock()
	w.named, w.size, w.stand.is = nil, 0, false
	w.mu.Unlock()
	w.stand.seen++
	w.stand.ctx.follow(effect.With(ctx, f.session))
	w.stand.came <- p
	return f.ending(), true
}

// next is what the wait brought at which w stands, nil if anything else is recorded.
func (f *Function) next(ctx context.Context, w *walk) *store.Pause {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	pauses, err := f.cfg.Store.Pauses(ctx, f.cfg.Lease.Job, f.cfg.Lease.Request)
	if err != nil || len(pauses) != w.stand.seen+1 {
		return nil // the run from the top has the error, too
	}
	p, at := &pauses[w.stand.seen], &w.named[0]
	if p.Response == nil || p.PauseRef != (journal.PauseRef{Kind: at.Kind, Name: at.Name, Position: at.Position}) {
		return nil
	}
	return p
}
