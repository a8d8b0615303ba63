package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Act carries out an operator's decision on a dead letter, as one entry (E10). Errors:
// store.ErrNotFound: there is no such dead letter. store.ErrStale: it, or its message, has
// ended. collation.ErrAction: the action does not fit. store.ErrUnavailable: nothing was changed.
// store.ErrUnknown: the action may have been carried out.
func (c *Committer) Act(ctx context.Context, a store.Action) error {
	if err := a.Check(); err != nil {
		return fmt.Errorf("dead letter %d: %w", a.ID, err)
	}
	l, err := c.cfg.Store.Letter(ctx, a.ID) // tells its job and row, which never change
	switch {
	case errors.Is(err, store.ErrNotFound):
		return err // it names the dead letter
	case err != nil:
		return fmt.Errorf("dead letter %d: %w", a.ID, err)
	}
	x := &action{Action: a, about: collation.RowKey{Job: l.Job, GUID: l.Row}}
	one := &call{name: "act", wants: x.want, decides: x.decide}
	if c.do(ctx, one); one.err != nil {
		return fmt.Errorf("dead letter %d: %w", a.ID, one.err)
	}
	return nil
}

// action is an operator's action. It reads the dead letter with its job and row. It decides by
// collation.Act. It writes the end of the dead letter, the row, an entry, and what is said of
// an effect (E10, 3.3).
type action struct {
	store.Action
	about collation.RowKey
}

func (x *action) want() []store.Want {
	return []store.Want{{Job: x.about.Job, Row: x.about.GUID, Letter: x.ID}}
}

func (x *action) decide(b *batch) error {
	letter, st := b.loaded.Letters[x.ID], b.loaded.States[x.about.Job]
	switch {
	case letter == nil:
		return fmt.Errorf("%w: dead letter %d", store.ErrNotFound, x.ID)
	case st == nil && b.loaded.Busy[x.about.Job]:
		return store.ErrBusy
	}
	p, need, err := collation.Act(st, letter, &x.Action, b.mode)
	switch {
	case need != nil:
		return needs{x.about.Job: need}
	case err != nil:
		return err
	case st == nil:
		b.write(p)
		return nil
	}
	b.apply(st, p)
	for _, other := range b.loaded.Letters {
		if other.Job == letter.Job && other.Row == letter.Row {
			other.Acted++ // so that the next action on the row gets an id of its own
		}
	}
	return nil
}

// overdue ends the requests that nobody answered in time, each by a call of its own (E9). A
// call reads the job and the row, decides by collation.Overdue, and writes the row and an entry.
// A job that somebody else has locked is left to the next look.
func (s *sweeper) overdue(ctx context.Context) error {
	late, err := s.e.cfg.Store.Late(ctx, journal.MessageRequest, sweepLimit)
	if err != nil || len(late) == 0 {
		return err
	}
	calls := make([]*call, len(late))
	for i, k := range late {
		calls[i] = &call{
			name: "overdue", wants: func() []store.Want { return []store.Want{{Job: k.Job, Row: k.GUID}} },
			decides: func(b *batch) error {
				st := b.loaded.States[k.Job]
				if st == nil {
					return nil
				}
				if p := collation.Overdue(st, k.GUID, b.mode); p != nil {
					b.apply(st, p)
				}
				return nil
			},
		}
	}
	s.e.committer.do(ctx, calls...)
	for _, x := range calls {
		err = errors.Join(err, x.err)
	}
	return err
}
