package durable

import (
	"cmp"
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// Wait returns what a pause of a durable function brought. A pause that is not over
// suspends the function: Wait does not return, because its goroutine ends (E12). Wait
// sets the position of p. It is only for functions in a job.
func Wait(ctx context.Context, p wire.Pause) (*journal.Response, error) {
	id := pauseID{p.Kind, p.Name}
	if r := remembered(ctx, id); r != nil {
		return r, nil
	}
	c := &call{pause: id}
	var err error
	if c.f, err = functionOf(ctx, c); err != nil {
		return nil, err
	}
	defer c.End()
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	p.Position = c.position
	return c.wait(p)
}

// remembered is what a pause brought, where that is plain: the function's own branch
// asks for it where it is recorded, as it may, and nothing is recorded within other
// branches, so that no other pause of that name can have been. The call is made then.
// In any other case nothing has happened. A function that wakes comes by all that it
// ever waited for: this is n²/2 of its calls, and kept short.
func remembered(ctx context.Context, id pauseID) *journal.Response {
	s, b := effect.From(ctx), branchOf(ctx)
	if s == nil || b == nil || b.fork != nil || effect.InBody(ctx) || s.Doomed() != nil ||
		!b.calling.CompareAndSwap(false, true) {
		return nil
	}
	var r *journal.Response
	if !b.stopping.Load() {
		r = b.w.remembered(b, id)
	}
	b.calling.Store(false)
	return r
}

func (w *walk) remembered(b *branch, id pauseID) *journal.Response {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.history.forks) > 0 || w.given || w.calls >= effect.MaxCalls {
		return nil
	}
	p := w.history.pass(b.calls+1, id)
	if p == nil {
		return nil
	}
	w.calls++
	b.calls++
	b.last = max(b.last, p.Seq)
	return p.Response
}

// wait is Wait for a pause at its position.
func (c *call) wait(p wire.Pause) (*journal.Response, error) {
	if _, err := wire.SuspendedUntil([]wire.Pause{p}).Journal(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", c, effects.ErrUsage, err)
	}
	w := c.branch.w
	again, moved := w.ask(c)
	switch {
	case again:
		return nil, c.judge(&effect.DuplicateError{First: p.Name, Second: p.Name, Kind: string(p.Kind)})
	case moved != nil:
		return nil, c.judge(&effects.NondeterminismError{
			Position: c.position, Asked: c.String(), Recorded: c.String(), RecordedAt: moved.position,
		})
	}
	r, err := c.compare(func(r *record) bool {
		return r.pause != nil && r.pause.Kind == p.Kind && r.pause.Name == p.Name
	})
	switch {
	case err != nil:
		return nil, err
	case r != nil && r.pause.Response != nil:
		c.branch.last = max(c.branch.last, r.pause.Seq)
		return r.pause.Response, nil
	case w.undoing:
		return nil, fmt.Errorf("%s: %w", c, ErrUndoing)
	}
	if err := c.branch.ours(c); err != nil {
		return nil, c.judge(err)
	}
	if err := w.name(c, p, cmp.Or(c.f.cfg.Room, wire.MaxPauseBytes)); err != nil {
		return nil, c.judge(err)
	}
	if came := w.stay(c.branch); came != nil {
		c.branch.last = max(c.branch.last, came.Seq)
		return came.Response, nil
	}
	c.branch.exit()
	return nil, nil
}

// ask notes the pause. again reports that this run has come by it before, and moved is
// where it is recorded, if at another position. What a branch has asked for that lost
// does not count: runs that begin later do not see it. It comes by again when the
// function is undone.
func (w *walk) ask(c *call) (again bool, moved *record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, asked := w.asked[c.pause]
	w.asked[c.pause] = c.position
	if asked && !under(before, w.lost) {
		return true, nil
	}
	for _, r := range w.history.pauses(c.pause) {
		if r.position == c.position || under(r.position, w.lost) {
			continue
		}
		if r.seen { // see remembered
			return true, nil
		}
		if moved == nil {
			moved = r
		}
	}
	if w.history.record(c.position) != nil || under(c.position, w.lost) {
		moved = nil // what is recorded here is compared
	}
	return false, moved
}

// name adds the pause to those that the function waits for, unless that exceeds a limit.
func (w *walk) name(c *call, p wire.Pause, room int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.size += p.Size()
	switch {
	case len(w.named) >= wire.MaxPauses:
		return fmt.Errorf("%s: %w: the function waits for more than %d things at a time: let a part of them wait in a workers.Child", c, effects.ErrUsage, wire.MaxPauses)
	case w.size > room:
		return fmt.Errorf("%s: %w: what the function waits for at a time has over %d bytes: give its children references instead of inputs", c, effects.ErrUsage, room)
	}
	w.named = append(w.named, named{c.branch, p})
	return nil
}
