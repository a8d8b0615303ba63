package durable

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/wire"
)

// Wait returns what a pause of a durable function brought. A pause that is not over
// suspends the function: Wait does not return, because its goroutine ends (E12). Wait
// sets the position of p. It is only for functions in a job.
func Wait(ctx context.Context, p wire.Pause) (*journal.Response, error) {
	what := pauseLabel(p.Kind, p.Name)
	f, err := of(ctx, what)
	if err != nil {
		return nil, err
	}
	c := &call{f: f, what: what}
	defer c.End()
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	p.Position = c.position
	if _, err := wire.SuspendedUntil([]wire.Pause{p}).Journal(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", c, effects.ErrUsage, err)
	}
	w, id := c.branch.w, pauseID{p.Kind, p.Name}
	if w.again(id, c.position) {
		return nil, c.judge(&effects.DuplicateError{First: p.Name, Second: p.Name, Kind: string(p.Kind)})
	}
	if err := c.movedPause(id); err != nil {
		return nil, err
	}
	r, err := c.compare(func(r *record) bool { return r.pause != nil && r.pause.Kind == p.Kind && r.pause.Name == p.Name })
	switch {
	case err != nil:
		return nil, err
	case r != nil && r.pause.Response != nil:
		c.branch.last = max(c.branch.last, r.pause.Seq)
		return r.pause.Response, nil
	case w.undoing:
		return nil, fmt.Errorf("%s: %w", c, ErrUndoing)
	}
	if err := c.branch.ours(c.what); err != nil {
		return nil, c.judge(err)
	}
	if err := w.name(c, p, cmp.Or(f.cfg.Room, wire.MaxPauseBytes)); err != nil {
		return nil, c.judge(err)
	}
	c.branch.exit()
	return nil, nil
}

// again notes the pause, and reports that this run has already asked for it. Pauses of
// lost branches do not count, because later runs do not see them.
func (w *walk) again(id pauseID, position string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, asked := w.asked[id]
	w.asked[id] = position
	return asked && !under(before, w.lost)
}

// movedPause refuses a pause that is recorded at another position. It ignores lost
// branches, which ask again when the function is undone.
func (c *call) movedPause(id pauseID) error {
	w := c.branch.w
	w.mu.Lock()
	here := w.history.at[c.position]
	lost := w.lost
	i := slices.IndexFunc(w.history.pauses[id], func(r *record) bool { return !under(r.position, lost) })
	w.mu.Unlock()
	if here != nil || i < 0 || under(c.position, lost) {
		return nil // compare checks the record at this position
	}
	r := w.history.pauses[id][i]
	return c.judge(&effects.NondeterminismError{Position: c.position, Asked: c.what, Recorded: c.what, RecordedAt: r.position})
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
