package effects

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// Limits of compensations.
const (
	MaxUndoName  = 150 // bytes
	MaxUndoTries = 10  // failures, until a person is asked

	firstUndoWait   = time.Second
	longestUndoWait = time.Minute
)

// classUndo is the class of a registered compensation. Its start is its
// registration; it has a result when it was run.
const classUndo Class = store.ClassUndo

// undo is a registered compensation.
type undo struct {
	name string
	fn   func(context.Context) error
}

// theCause is where the cause is recorded for which a function is undone.
func theCause() *call { return &call{name: "undo", own: "cause", class: Pure, unplaced: true} }

// Compensate registers fn as what takes back what the durable function is about to
// do: it is recorded, and run when the function fails for good or is ended by
// somebody else (3.5).
func (s *Session) Compensate(ctx context.Context, name string, fn func(context.Context) error) error {
	c := newCall(name, nil)
	c.name, c.own, c.class = "undo:"+name, "undo", classUndo
	if len(name) > MaxUndoName {
		c.fail("its name has %d bytes, the limit is %d", len(name), MaxUndoName)
	}
	if c.err != nil {
		return c.err
	}
	defer c.done()
	if err := s.step(ctx, c); err != nil {
		return err
	}
	if c.branch == nil {
		return notDurable(c)
	}
	if err := s.compareEffect(c); err != nil {
		return err
	}
	w, e := c.branch.w, s.effect(c, 0)
	if w.registered(e.Key) {
		return s.judge(c, &DuplicateError{First: name, Second: name, Kind: "compensation"})
	}
	if row, known := w.rows.byKey[e.Key]; known {
		if err := s.strays(c, &row); err != nil {
			return err
		}
	} else if err := s.register(ctx, c, e); err != nil {
		return err
	}
	w.mu.Lock()
	w.undos[e.Key] = &undo{name, fn}
	w.mu.Unlock()
	return nil
}

func (w *walk) registered(key journal.Digest) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.undos[key] != nil
}

// register records the compensation.
func (s *Session) register(ctx context.Context, c *call, e journal.Effect) error {
	if err := s.outwards(ctx, c, false); err != nil {
		return err
	}
	var row store.EffectRow
	err := insist(context.WithoutCancel(ctx), startTries, func(ctx context.Context) (err error) {
		row, _, err = s.cfg.Store.StartEffect(ctx, s.current(), e)
		return err
	})
	if err != nil {
		return s.trouble(c, "record it", err)
	}
	s.adopt(&row)
	s.count(c, "registered")
	c.back()
	return nil
}

// Undoable reports that the function has compensations, of this run or recorded.
func (s *Session) Undoable() bool {
	w := s.walking()
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.undos) > 0 || slices.ContainsFunc(w.rows.list, func(r store.EffectRow) bool { return r.Class == string(classUndo) })
}

// Undoing reports that the run is for the compensations only: nothing that is not
// recorded is begun (ErrUndoing). cause is what was recorded with BeginUndo, nil in
// a run for another request.
func (s *Session) Undoing() (cause []byte, is bool) {
	w := s.walking()
	return w.cause, w.undoing
}

// BeginUndo records the cause, canonical JSON, for which the function is undone,
// and loads what is recorded anew: the function is to be run once more, and then
// Undo. What this run came to is forgotten.
func (s *Session) BeginUndo(ctx context.Context, cause []byte) error {
	c := theCause()
	e := s.effect(c, 0)
	e.Result = cause
	if _, err := s.record(ctx, c, e, nil); err != nil {
		return err
	}
	s.mu.Lock()
	s.calls, s.verdict, s.rank = nil, nil, 0
	s.mu.Unlock()
	s.cfg.Replay = true
	return s.Load(ctx)
}

// UndoError says that a compensation has failed.
type UndoError struct {
	Name     string
	Failures int // so far
	Err      error
}

// Error names the compensation.
func (e *UndoError) Error() string {
	return fmt.Sprintf("compensation %q has failed %d times: %v", e.Name, e.Failures, e.Err)
}

// Unwrap gives the error of the last time.
func (e *UndoError) Unwrap() error { return e.Err }

// Pause is what to wait for before it is tried again.
func (e *UndoError) Pause() wire.Pause {
	wait := min(firstUndoWait<<min(e.Failures-1, MaxUndoTries), longestUndoWait)
	return wire.Pause{Kind: journal.PauseSleep, Name: undoPause(e.Name, e.Failures), Position: undoPosition, For: wait.Microseconds()}
}

func undoPause(name string, failures int) string { return fmt.Sprintf("undo:%s:%d", name, failures) }

// Undo runs the compensations that have not run, the latest registered first, each
// with the key of its own (Key). It ends with the first that fails, an *UndoError;
// other errors are in Verdict.
func (s *Session) Undo(ctx context.Context) error {
	w := s.walking()
	for _, row := range slices.Backward(w.rows.list) {
		if row.Class != string(classUndo) || row.State != store.EffectStarted {
			continue
		}
		u := w.undos[row.Key]
		if u == nil { // of a branch that had lost
			return s.judge(nil, &NondeterminismError{Position: row.Position, Recorded: effectLabel(row.Name)})
		}
		if err := s.undo(ctx, w, u, row); err != nil {
			return err
		}
	}
	return nil
}

// undo runs one compensation. Another request than the function's own runs it as
// an Idempotent effect of its own, with the same key.
func (s *Session) undo(ctx context.Context, w *walk, u *undo, row store.EffectRow) error {
	c := &call{name: row.Name, own: "undo", class: classUndo, position: row.Position}
	e := s.effect(c, row.N)
	if s.cfg.Original != nil && !s.cfg.Frozen {
		c.class = Idempotent
		for n := row.N; ; n++ {
			e = s.effect(c, n)
			if known, ok := w.undone.byKey[e.Key]; !ok || known.State == store.EffectStarted {
				break
			} else if known.State == store.EffectCompleted {
				return nil
			}
		}
		stands, _, err := s.begin(ctx, c, &e)
		if err != nil || stands.State == store.EffectCompleted {
			return err
		}
	}
	if s.cfg.Frozen {
		s.stopAt(c, true)
		return ErrUndoing
	}
	began := time.Now()
	err := alone(context.WithValue(context.WithValue(ctx, keyOf{}, e.Key.String()), within{}, "compensation "+u.name), u.fn)
	s.span(c, e.Key, began, err)
	if err != nil {
		s.count(c, "failed")
		return &UndoError{Name: u.name, Failures: w.failures(u.name) + 1, Err: err}
	}
	e.Result = []byte("null")
	_, err = s.record(ctx, c, e, nil)
	return err
}

// failures is how often a compensation has failed before.
func (w *walk) failures(name string) int {
	n := 0
	for _, p := range w.waited {
		if p.Position == undoPosition && p.Response != nil && p.Name == undoPause(name, n+1) {
			n++
		}
	}
	return n
}

// alone runs fn; a panic, or the end of its goroutine, is an error.
func alone(ctx context.Context, fn func(context.Context) error) error {
	ends := make(chan error, 1)
	go func() {
		err := ErrGoexit
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{v, debug.Stack()}
			}
			ends <- err
		}()
		err = fn(ctx)
	}()
	return <-ends
}
