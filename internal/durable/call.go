package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// ErrUndoing is the error of a call without a record in a durable function that has
// failed and runs once more only for its compensations.
var ErrUndoing = errors.New("the function is being undone: nothing new is begun")

// call is one call of a durable function. It is the effect.Place of its effect.
type call struct {
	f        *Function
	what     string       // names it in errors; "" of an effect and of a pause, which name themselves
	pause    pauseID      // of a pause
	effect   *effect.Call // nil of a call that is none
	unplaced bool         // it takes no position
	forks    bool         // the call has branches

	branch   *branch // nil until begin found it
	position string
}

// Place implements effect.Placer.
func (f *Function) Place(ctx context.Context, e *effect.Call) error {
	c := &call{f: f, effect: e}
	if err := c.begin(ctx); err != nil {
		return err
	}
	return c.compareEffect()
}

// begin finds the branch of the call, and takes the branch's next position (E15). End
// ends the call, even if begin fails. It does not return where the branch must stop.
func (c *call) begin(ctx context.Context) error {
	if err := effect.Callable(ctx, c); err != nil {
		return err
	}
	b, calls, err := enterCall(ctx, c)
	if err != nil {
		return c.f.session.Judge(nil, err) // a misuse, not a difference from the record
	}
	c.branch = b
	if c.effect != nil {
		c.effect.At(c, "")
	}
	if err := c.f.session.Doomed(); err != nil || c.unplaced {
		return err
	}
	b.calls++
	c.position = b.place(b.calls)
	if c.effect != nil {
		c.effect.At(c, c.position)
	}
	switch {
	case calls > effect.MaxCalls:
		return c.judge(effect.TooManyCalls(c.String()))
	case len(c.position) > wire.MaxPosition:
		return c.judge(fmt.Errorf("%s: %w: All and First are nested too deep, its position has %d bytes, the limit is %d",
			c, effects.ErrUsage, len(c.position), wire.MaxPosition))
	}
	return nil
}

// String names the call, as errors show it.
func (c *call) String() string {
	switch {
	case c.what != "":
		return c.what
	case c.effect != nil:
		return c.effect.String()
	default:
		return pauseLabel(c.pause.kind, c.pause.name)
	}
}

func (c *call) judge(err error) error { return c.f.session.Judge(c, err) }

// place is the position of the branch's call with that number.
func (b *branch) place(number int) string {
	if b.path == "" {
		return strconv.Itoa(number)
	}
	return b.path + "." + strconv.Itoa(number)
}

func branchOf(ctx context.Context) *branch {
	b, _ := ctx.Value(branchKey{}).(*branch)
	return b
}

// enterCall finds the branch that a call is made in, and how many calls the run has
// made with it.
func enterCall(ctx context.Context, c *call) (b *branch, calls int, err error) {
	if b = branchOf(ctx); b == nil {
		return nil, 0, fmt.Errorf("%s: %w: its context is not one of the function's", c, effects.ErrUsage)
	}
	if !b.calling.CompareAndSwap(false, true) {
		return nil, 0, fmt.Errorf("%s: %w: another call of its branch is under way: it is made inside an effect, in a goroutine of your own, "+
			"or in a branch with the context of the branch around it; use the context that the branch gets, and workers.All for what is to go on at the same time", c, effects.ErrUsage)
	}
	calls, stops := b.w.count(b)
	if b.stopping.Load() || stops {
		err := b.halt(c)
		b.calling.Store(false)
		return nil, 0, err
	}
	return b, calls, nil
}

// count counts the call, and reports that the branch is to make no more: it has
// lost, the run is given up, or the function calls on and on whatever it is told.
func (w *walk) count(b *branch) (calls int, stops bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	return w.calls, w.given || b.lostLocked() || w.calls > maxNumber
}

// End implements effect.Place.
func (c *call) End() {
	if b := c.branch; b != nil {
		b.enter()
		b.calling.Store(false)
	}
}

// Leave implements effect.Place.
func (c *call) Leave() { c.branch.leave() }

// Back implements effect.Place. It does not return if the branch has lost or the run was
// given up.
func (c *call) Back() {
	if c.branch.out {
		c.branch.enter()
		c.goOn()
	}
}

// Lost implements effect.Place.
func (c *call) Lost() bool { return c.branch.isLost() }

// Stopping implements effect.Place.
func (c *call) Stopping() bool { return c.branch.stopping.Load() }

// goOn does not return if the branch has lost or the run was given up.
func (c *call) goOn() {
	b := c.branch
	b.w.mu.Lock()
	stop := b.w.given || b.lostLocked()
	b.w.mu.Unlock()
	if stop {
		b.enter()
		_ = b.halt(c) // it is the branch's own goroutine that went outside
	}
}

// Begins implements effect.Place. A function that is undone or replayed does nothing
// without a record, and one whose context has ended begins nothing. A new call first
// waits until the run has passed all recorded calls that it can reach, so that a
// difference shows before anything is recorded beside it.
func (c *call) Begins(ctx context.Context, started bool) error {
	b := c.branch
	switch {
	case b.w.undoing:
		return fmt.Errorf("%s: %w", c, ErrUndoing)
	case c.f.cfg.Frozen:
		c.f.session.StopAt(effect.Unrecorded{Call: c.String(), Position: c.position, Started: started})
		return b.halt(c)
	case ctx.Err() != nil:
		// No later run would repeat what the function does with this error.
		return c.judge(fmt.Errorf("%s did not begin: %w", c, context.Cause(ctx)))
	}
	if !b.w.waits(c) {
		b.leave()
		return nil
	}
	if r := b.hold(); r != nil {
		return c.judge(&effects.NondeterminismError{
			Position: cmp.Or(c.position, b.place(b.calls+1)), Asked: c.String(), Recorded: r.String(),
			RecordedAt: r.position,
		})
	}
	c.goOn()
	return c.f.session.Doomed()
}

// waits reports that the call is new while some recorded calls have not been made yet. A
// call that is made again is not new.
func (w *walk) waits(c *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.history.record(c.position) == nil && w.history.unseen(w.lost) != nil
}

// compare compares a call with the record at its position and returns that record, nil
// for none. is says whether the record is of the same call. The first difference is an
// error (E15).
func (c *call) compare(is func(*record) bool) (*record, error) {
	r, differs := c.branch.w.compare(c, is)
	if differs != nil {
		return nil, c.judge(differs)
	}
	return r, nil
}

func (w *walk) compare(c *call, is func(*record) bool) (*record, *effects.NondeterminismError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.history
	r := h.record(c.position)
	if r != nil && is(r) {
		r.seen = true
		return r, nil
	}
	differs := &effects.NondeterminismError{Position: c.position, Asked: c.String()}
	switch {
	case r != nil:
		differs.Recorded = r.String()
		if differs.Recorded == differs.Asked {
			differs.Asked += " with other arguments"
		}
	case h.forks[c.position] && !c.forks:
		differs.Recorded = "All or First"
	case c.once() || !h.beyond(c.branch):
		return nil, nil
	default:
		if next := h.unseen(w.lost); next != nil {
			differs.Recorded, differs.RecordedAt = next.String(), next.position
		}
	}
	return nil, differs
}

// compareEffect is compare for effects.
func (c *call) compareEffect() error {
	_, err := c.compare(func(r *record) bool { return len(r.effects) > 0 && r.effects[0].Key == c.key(r.effects[0].N) })
	return err
}

// key is the key of the call's effect after n outcomes "not done".
func (c *call) key(n int) journal.Digest { return c.f.session.Effect(c.effect, n).Key }

func (c *call) once() bool { return c.effect != nil && c.effect.IsOnce() }

// Strays implements effect.Place. An outcome "not done" may be recorded at another
// position if this run has passed that call and makes it again.
func (c *call) Strays(row *store.EffectRow) error {
	if row.Position == c.position || c.branch.w.meets(c, row) {
		return nil
	}
	return c.judge(&effects.NondeterminismError{
		Position: c.position, Asked: c.String(), Recorded: effectLabel(row.Name), RecordedAt: row.Position,
	})
}

func (w *walk) meets(c *call, row *store.EffectRow) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.history.record(row.Position)
	if r != nil && c.once() {
		r.seen = true
	}
	return r != nil && r.seen && (c.once() || row.State == store.EffectNotDone)
}

// WentOn implements effect.Place.
func (c *call) WentOn(row *store.EffectRow) bool {
	w := c.branch.w
	next, known := w.rows.ByKey[c.key(row.N+1)]
	if known && next.Position == c.position {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return known || c.f.cfg.Ended || w.history.beyond(c.branch)
}
