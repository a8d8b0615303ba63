package effects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// step begins a call. In a durable function it finds the branch, and takes its
// next position; the call ends with done (E15). It does not return where the
// branch is to go no further.
func (s *Session) step(ctx context.Context, c *call) error {
	if outer, ok := ctx.Value(within{}).(string); ok {
		return fmt.Errorf("%s: %w: it is called inside %s, which can have no calls of its own", c, ErrUsage, outer)
	}
	if !s.cfg.Durable {
		return nil
	}
	b, err := enterCall(ctx, c.String())
	if err != nil {
		return s.judge(nil, err) // no later run would fail so
	}
	c.branch = b
	if err := s.doomed(); err != nil {
		return err
	}
	if c.unplaced {
		return nil
	}
	b.calls++
	c.position = b.place(b.calls)
	switch {
	case b.w.count() > MaxCalls:
		return s.judge(c, fmt.Errorf("%s: %w", c, ErrTooManyCalls))
	case len(c.position) > wire.MaxPosition:
		return s.judge(c, fmt.Errorf("%s: %w: All and First are nested too deep, its position has %d bytes, the limit is %d",
			c, ErrUsage, len(c.position), wire.MaxPosition))
	}
	return nil
}

// place is the position of the branch's call of that number.
func (b *branch) place(number int) string {
	if b.path == "" {
		return strconv.Itoa(number)
	}
	return b.path + "." + strconv.Itoa(number)
}

// enterCall finds the branch that a call is made in.
func enterCall(ctx context.Context, what string) (*branch, error) {
	b, _ := ctx.Value(branchKey{}).(*branch)
	if b == nil {
		return nil, fmt.Errorf("%s: %w: its context is not one of the function's", what, ErrUsage)
	}
	if !b.calling.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("%s: %w: another call of its branch is under way: it is made inside an effect, in a goroutine of your own, "+
			"or in a branch with the context of the branch around it; use the context that the branch gets, and workers.All for what is to go on at the same time", what, ErrUsage)
	}
	if b.stopping.Load() || b.w.stops(b) {
		err := b.halt(what)
		b.calling.Store(false)
		return nil, err
	}
	return b, nil
}

// stops counts the call, and reports that the branch is to make no more: it has
// lost, the run is given up, or the function calls on and on whatever it is told.
func (w *walk) stops(b *branch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	return w.given || b.lostLocked() || w.calls > 2*MaxCalls
}

func (w *walk) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

// done ends a call.
func (c *call) done() {
	if b := c.branch; b != nil {
		b.enter()
		b.calling.Store(false)
	}
}

// back comes back from outside. It does not return where the branch has lost, or
// the run was given up.
func (c *call) back() {
	if c.branch != nil && c.branch.out {
		c.branch.enter()
		c.goOn()
	}
}

// goOn does not return where the branch has lost, or the run was given up.
func (c *call) goOn() {
	b := c.branch
	b.w.mu.Lock()
	stop := b.w.given || b.lostLocked()
	b.w.mu.Unlock()
	if stop {
		b.enter()
		_ = b.halt(c.String()) // it is the branch's own goroutine that went outside
	}
}

// outwards is asked before a call does anything that is not recorded: a function
// that is undone, or only looked at, does not, and one whose context has ended
// begins nothing. Something new waits until all that is recorded has been come by,
// as far as that can be: so a difference shows before anything is recorded beside
// it. Then other branches go on while the call is outside.
func (s *Session) outwards(ctx context.Context, c *call, started bool) error {
	b := c.branch
	switch {
	case b != nil && b.w.undoing:
		return fmt.Errorf("%s: %w", c, ErrUndoing)
	case s.cfg.Frozen:
		s.stopAt(c, started)
		if b != nil {
			return b.halt(c.String())
		}
		return fmt.Errorf("%s: %w", c, errStopped)
	case b == nil:
		return nil
	case ctx.Err() != nil:
		// What the function makes of this error, no later run would repeat.
		return s.judge(c, &attemptError{c.String() + " did not begin", context.Cause(ctx)})
	}
	if !b.w.waits(c) {
		b.leave()
		return nil
	}
	if r := b.hold(); r != nil {
		return s.judge(c, &NondeterminismError{
			Position: cmp.Or(c.position, b.place(b.calls+1)), Asked: c.String(), Recorded: r.String(), RecordedAt: r.position,
		})
	}
	c.goOn()
	return s.doomed()
}

// waits reports that the call is new, and that there are recorded ones which have
// not been come by yet. One that is made again is not new.
func (w *walk) waits(c *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.history.at[c.position] == nil && w.history.unseen(w.lost) != nil
}

// errStopped is what other handlers get where a replay stops.
var errStopped = errors.New("the replay ends here, no outcome is recorded")

// leave lets other branches go on while the call is outside.
func (c *call) leave() {
	if c.branch != nil {
		c.branch.leave()
	}
}

// compare holds a call of a durable function against what is recorded at its
// position, which it returns, nil for nothing; is says whether that is the same
// call. The first difference is an error (E15).
func (s *Session) compare(c *call, is func(*record) bool) (*record, error) {
	r, differs := c.branch.w.compare(c, is)
	if differs != nil {
		return nil, s.judge(c, differs)
	}
	return r, nil
}

func (w *walk) compare(c *call, is func(*record) bool) (*record, *NondeterminismError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.history
	r := h.at[c.position]
	if r != nil && is(r) {
		r.seen = true
		return r, nil
	}
	differs := &NondeterminismError{Position: c.position, Asked: c.String()}
	switch {
	case r != nil:
		differs.Recorded = r.String()
		if differs.Recorded == differs.Asked {
			differs.Asked += " with other arguments"
		}
	case h.forks[c.position] && !c.forks:
		differs.Recorded = "All or First"
	case c.once || !h.beyond(c.branch):
		return nil, nil
	default:
		if next := h.unseen(w.lost); next != nil {
			differs.Recorded, differs.RecordedAt = next.String(), next.position
		}
	}
	return nil, differs
}

// compareEffect is compare for effects. In other handlers it does nothing.
func (s *Session) compareEffect(c *call) error {
	if c.branch == nil || c.unplaced {
		return nil
	}
	_, err := s.compare(c, func(r *record) bool {
		return len(r.effects) > 0 && r.effects[0].Key == s.cfg.Identity.key(c, r.effects[0].N)
	})
	return err
}

// strays refuses an effect that is recorded at another position. An outcome "not
// done" may be: of a call that this run has come by, and makes again.
func (s *Session) strays(c *call, row *store.EffectRow) error {
	if c.branch == nil || row.Position == c.position || c.branch.w.meets(c, row) {
		return nil
	}
	return s.judge(c, &NondeterminismError{Position: c.position, Asked: c.String(), Recorded: effectLabel(row.Name), RecordedAt: row.Position})
}

func (w *walk) meets(c *call, row *store.EffectRow) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.history.at[row.Position]
	if r != nil && c.once {
		r.seen = true
	}
	return r != nil && r.seen && (c.once || row.State == store.EffectNotDone)
}

// past says of a recorded outcome "not done" whether the function went on with it:
// then it is what every later run gets. Otherwise the effect runs again.
func (s *Session) past(c *call, row *store.EffectRow) error {
	if c.branch == nil || row.Error == nil ||
		row.Error.Class == store.FailureVoided || row.Error.Class == store.FailureOperator {
		return nil
	}
	w := c.branch.w
	next, known := w.rows.byKey[s.cfg.Identity.key(c, row.N+1)]
	if known && next.Position == c.position {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known || s.cfg.Ended || w.history.beyond(c.branch) {
		return &FailedError{Name: c.name, Failure: *row.Error}
	}
	return nil
}

// failed is what the function gets of an outcome "not done": the same in the run
// that it comes from and in those that replay it.
func (c *call) failed(recorded *journal.Failure, err error) error {
	if c.branch == nil || recorded == nil {
		return err
	}
	return &FailedError{Name: c.name, Failure: *recorded, Cause: err}
}
