package durable

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of compensations.
const (
	MaxUndoName     = 150 // bytes
	MaxUndoAttempts = 10  // failures before a person must decide

	firstUndoWait   = time.Second
	longestUndoWait = time.Minute
)

// classUndo is the class of a registered compensation. Its start is its registration; it
// has a result once it has run.
const classUndo effects.Class = store.ClassUndo

// undo is a registered compensation.
type undo struct {
	name string
	fn   func(context.Context) error
}

// compensation is the call for a compensation's effect.
func compensation(name string, class effects.Class) (*effect.Call, error) {
	return effect.OwnCall("undo:", name, "undo", class)
}

// theCause is the call for the effect that records why a function is undone.
func theCause() *effect.Call {
	c, _ := effect.OwnCall("", "undo", "cause", effects.Pure) // the name is valid
	return c
}

// Compensate registers fn as what takes back the next step of the durable function. The
// registration is recorded; fn runs when the function fails for good or something else
// ends it (3.5). Outside a job Plain keeps it.
func Compensate(ctx context.Context, name string, fn func(context.Context) error) error {
	c := &call{what: effectLabel("undo:" + name)}
	var err error
	switch c.f, err = functionOf(ctx, c); {
	case err != nil:
		return err
	case c.f == nil:
		plainCompensate(ctx, fn)
		return nil
	case len(name) > MaxUndoName:
		return fmt.Errorf("%.80s: %w: its name has %d bytes, the limit is %d", c, effects.ErrUsage, len(name), MaxUndoName)
	}
	if c.effect, err = compensation(name, classUndo); err != nil {
		return err
	}
	defer c.End()
	if err := c.begin(ctx); err != nil {
		return err
	}
	if err := c.compareEffect(); err != nil {
		return err
	}
	key, err := c.register(ctx)
	if err != nil {
		return err
	}
	w := c.branch.w
	if w.registered(key) {
		return c.judge(&effect.DuplicateError{First: name, Second: name, Kind: "compensation"})
	}
	w.mu.Lock()
	w.undos[key] = &undo{name, fn}
	w.mu.Unlock()
	return nil
}

func (w *walk) registered(key journal.Digest) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.undos[key] != nil
}

// register records the registration of a compensation, once, and gives its key. One that has run
// in an earlier generation is taken over as not done: what is done anew is undone under the next
// key.
func (c *call) register(ctx context.Context) (key journal.Digest, err error) {
	begun := false
	for n := 0; ; n++ {
		key = c.key(n)
		if c.branch.w.registered(key) {
			return key, nil
		}
		row, known := c.branch.w.rows.ByKey[key]
		switch {
		case known:
			err = c.Strays(&row)
		case !begun:
			if err = c.Begins(ctx, false); err != nil {
				return key, err
			}
			begun = true
			fallthrough
		default:
			row, err = c.f.session.Register(ctx, c.effect, n)
		}
		if err != nil {
			return key, err
		}
		if row.State != store.EffectNotDone {
			break
		}
	}
	if begun {
		c.Back()
	}
	return key, nil
}

// Undoable reports that the function has compensations, from this run or recorded.
func (f *Function) Undoable() bool {
	w := f.walking()
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.undos) > 0 || slices.ContainsFunc(w.rows.List, func(r store.EffectRow) bool {
		return r.Class == string(classUndo)
	})
}

// Undoing reports that the run is for the compensations only, so that calls without a
// record fail with ErrUndoing. cause is what BeginUndo recorded, nil in a run for another
// request.
func (f *Function) Undoing() (cause []byte, is bool) {
	w := f.walking()
	return w.cause, w.undoing
}

// BeginUndo records the cause, canonical JSON, for which the function is undone, and
// loads the record again. The outcome of this run is forgotten: run the function once
// more, then call Undo.
func (f *Function) BeginUndo(ctx context.Context, cause []byte) error {
	c := theCause()
	if err := f.session.Record(ctx, c, f.session.Effect(c, 0), cause); err != nil {
		return err
	}
	f.cfg.Replay = true
	return f.Load(ctx)
}

// Stopped is the error of a run for the compensations that failed before it came to them.
func (f *Function) Stopped(err error) *UndoError {
	return &UndoError{Failures: f.walking().failures("") + 1, Err: err}
}

// UndoError says that a compensation has failed, or the run that was to register them.
type UndoError struct {
	Name     string // "" of that run
	Failures int    // so far
	Err      error
}

// Error names the compensation.
func (e *UndoError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("the run for the compensations has failed %d times: %v", e.Failures, e.Err)
	}
	return fmt.Sprintf("compensation %q has failed %d times: %v", e.Name, e.Failures, e.Err)
}

// Unwrap gives the latest error.
func (e *UndoError) Unwrap() error { return e.Err }

// Pause is the wait before the next attempt.
func (e *UndoError) Pause() wire.Pause {
	wait := backoff.Delay(e.Failures-1, firstUndoWait, longestUndoWait, nil)
	ref := journal.UndoPause(e.Name, e.Failures)
	return wire.Pause{Kind: ref.Kind, Name: ref.Name, Position: ref.Position, For: wait.Microseconds()}
}

// Undo runs the compensations that have not run, the latest registered first, each with
// its own key (effects.Key). It ends with the first failure, an *UndoError, or with the cause
// for which ctx has ended; other errors are in the session's verdict.
func (f *Function) Undo(ctx context.Context) error {
	w := f.walking()
	for _, row := range slices.Backward(w.rows.List) {
		if row.Class != string(classUndo) || row.State != store.EffectStarted {
			continue
		}
		if ctx.Err() != nil { // it may have lost its request
			return context.Cause(ctx)
		}
		u := w.undos[row.Key]
		if u == nil { // of a branch that had lost
			return f.session.Judge(nil,
				&effects.NondeterminismError{Position: row.Position, Recorded: effectLabel(row.Name)})
		}
		if err := f.undo(ctx, w, u, row); err != nil {
			return err
		}
	}
	return nil
}

// undo runs one compensation.
func (f *Function) undo(ctx context.Context, w *walk, u *undo, row store.EffectRow) error {
	c, e, done, err := f.toUndo(ctx, w, u, row)
	if err != nil || done {
		return err
	}
	if f.cfg.Frozen {
		f.session.StopAt(effect.Unrecorded{Call: c.String(), Position: row.Position, Started: true})
		return ErrUndoing
	}
	began := time.Now()
	err = Alone(effect.Body(effect.With(ctx, f.session), e.Key.String(), "compensation "+u.name), u.fn)
	f.session.Ran(c, e.Key, began, err)
	if err != nil {
		return &UndoError{Name: u.name, Failures: w.failures(u.name) + 1, Err: usercode.Read(err)}
	}
	return f.session.Record(ctx, c, e, []byte("null"))
}

// toUndo is the effect for the run of a compensation. A request other than the function's
// own runs it as an Idempotent effect with the same key. done says that this has already
// happened.
func (f *Function) toUndo(
	ctx context.Context, w *walk, u *undo, row store.EffectRow,
) (c *effect.Call, e journal.Effect, done bool, err error) {
	class, other := classUndo, f.cfg.Original != nil && !f.cfg.Frozen
	if other {
		class = effects.Idempotent
	}
	if c, err = compensation(u.name, class); err != nil {
		return c, e, false, err
	}
	c.At(nil, row.Position)
	if e = f.session.Effect(c, row.N); !other {
		return c, e, false, nil
	}
	for n := row.N; ; n++ {
		e = f.session.Effect(c, n)
		if known, ok := w.undone.ByKey[e.Key]; !ok || known.State == store.EffectStarted {
			break
		} else if known.State == store.EffectCompleted {
			return c, e, true, nil
		}
	}
	stands, _, err := f.session.Begin(ctx, c, &e)
	return c, e, stands.State == store.EffectCompleted, err
}

// failures is how often a compensation has failed so far.
func (w *walk) failures(name string) int {
	n := 0
	for _, p := range w.waited {
		if p.Response != nil && p.PauseRef == journal.UndoPause(name, n+1) {
			n++
		}
	}
	return n
}
