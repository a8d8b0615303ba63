package effects

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/wire"
)

// Wait returns what a pause of a durable function brought. One that has not come
// suspends the function: Wait does not return then, its goroutine ends (E12). The
// position of p is set here.
func (s *Session) Wait(ctx context.Context, p wire.Pause) (*journal.Response, error) {
	c := &call{what: pauseLabel(p.Kind, p.Name)}
	defer c.done()
	if err := s.step(ctx, c); err != nil {
		return nil, err
	}
	if c.branch == nil {
		return nil, notDurable(c)
	}
	p.Position = c.position
	if _, err := wire.SuspendedUntil([]wire.Pause{p}).Journal(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", c, ErrUsage, err)
	}
	w, id := c.branch.w, pauseID{p.Kind, p.Name}
	if w.again(id, c.position) {
		return nil, s.judge(c, &DuplicateError{First: p.Name, Second: p.Name, Kind: string(p.Kind)})
	}
	if err := s.movedPause(c, id); err != nil {
		return nil, err
	}
	r, err := s.compare(c, func(r *record) bool { return r.pause != nil && r.pause.Kind == p.Kind && r.pause.Name == p.Name })
	switch {
	case err != nil:
		return nil, err
	case r != nil && r.pause.Response != nil:
		c.branch.last = max(c.branch.last, r.pause.Seq)
		return r.pause.Response, nil
	case w.undoing:
		return nil, fmt.Errorf("%s: %w", c, ErrUndoing)
	}
	if err := c.branch.ours(c.String()); err != nil {
		return nil, s.judge(c, err)
	}
	if err := w.name(c, p, cmp.Or(s.cfg.Room, wire.MaxPauseBytes)); err != nil {
		return nil, s.judge(c, err)
	}
	c.branch.exit()
	return nil, nil
}

func notDurable(c *call) error {
	return fmt.Errorf("%s: %w: it is for durable functions, register the handler with workers.HandleDurable", c, ErrUsage)
}

// again notes the pause, and reports that this run has come by it before. What a
// branch has asked for that lost does not count: runs that begin later do not see
// it.
func (w *walk) again(id pauseID, position string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, asked := w.asked[id]
	w.asked[id] = position
	return asked && !under(before, w.lost)
}

// movedPause refuses a pause that is recorded at another position, but for those of
// branches that have lost, which come by again when the function is undone.
func (s *Session) movedPause(c *call, id pauseID) error {
	w := c.branch.w
	w.mu.Lock()
	here := w.history.at[c.position]
	lost := w.lost
	i := slices.IndexFunc(w.history.pauses[id], func(r *record) bool { return !under(r.position, lost) })
	w.mu.Unlock()
	if here != nil || i < 0 || under(c.position, lost) {
		return nil // what is recorded here is compared
	}
	r := w.history.pauses[id][i]
	return s.judge(c, &NondeterminismError{Position: c.position, Asked: c.String(), Recorded: c.String(), RecordedAt: r.position})
}

// name puts the pause among those that the function waits for. One that its
// goroutine must not end for is not named.
func (w *walk) name(c *call, p wire.Pause, room int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.size += p.Size()
	switch {
	case len(w.named) >= wire.MaxPauses:
		return fmt.Errorf("%s: %w: the function waits for more than %d things at a time: let a part of them wait in a workers.Child", c, ErrUsage, wire.MaxPauses)
	case w.size > room:
		return fmt.Errorf("%s: %w: what the function waits for at a time has over %d bytes: give its children references instead of inputs", c, ErrUsage, room)
	}
	w.named = append(w.named, named{c.branch, p})
	return nil
}
