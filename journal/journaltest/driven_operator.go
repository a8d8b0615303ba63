package journaltest

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Act carries out an operator's action on a dead letter (E10).
func (d Driven) Act(ctx context.Context, a store.Action) error {
	if err := a.Check(); err != nil {
		return err
	}
	seen, err := d.Letter(ctx, a.ID)
	if err != nil {
		return err
	}
	wants := []store.Want{{Job: seen.Job, Row: seen.Row, Letter: a.ID}}
	return d.carry(ctx, wants, func(c store.Committer, l *store.Loaded) ([]store.Chained, error) {
		letter, st := l.Letters[a.ID], l.States[seen.Job]
		if letter == nil {
			return nil, fmt.Errorf("%w: dead letter %d", store.ErrNotFound, a.ID)
		}
		p, need, err := collation.Act(st, letter, &a, effectMode)
		if need != nil {
			if err := c.More(ctx, map[journal.JobID]*collation.Need{seen.Job: need}); err != nil {
				return nil, err
			}
			p, _, err = collation.Act(st, letter, &a, effectMode)
		}
		switch {
		case err != nil:
			return nil, err
		case st == nil:
			return []store.Chained{{Plan: p}}, nil
		}
		return []store.Chained{store.Chain(&st.Job, p)}, nil
	})
}

// TurnOverdue ends requests that are past their time (E9), and returns their number.
func (d Driven) TurnOverdue(ctx context.Context, limit int) (n int, err error) {
	late, err := d.Late(ctx, limit)
	for i := 0; i < len(late) && err == nil; i++ {
		k, turned := late[i], false
		err = d.transact(ctx, []store.Want{{Job: k.Job, Row: k.GUID}}, func(l *store.Loaded) ([]store.Chained, error) {
			st := l.States[k.Job]
			if st == nil {
				return nil, nil
			}
			p := collation.Overdue(st, k.GUID, effectMode)
			if turned = p != nil; !turned {
				return nil, nil
			}
			return []store.Chained{store.Chain(&st.Job, p)}, nil
		})
		if turned && err == nil {
			n++
		}
	}
	return n, err
}

// DeadLetter records a message for which no row was read (T3, S15).
func (d Driven) DeadLetter(ctx context.Context, letter collation.DeadLetter, raw []byte) error {
	letter.Raw, letter.Stray = raw, true
	return d.transact(ctx, nil, func(*store.Loaded) ([]store.Chained, error) {
		return []store.Chained{{Plan: collation.WriteDeadLetter(letter)}}, nil
	})
}

// Discard deletes rows whose job is only a tombstone (C5) or was cancelled before it began. Rows
// of existing jobs stay.
func (d Driven) Discard(ctx context.Context, rows []collation.RowKey) error {
	wants := make([]store.Want, len(rows))
	for i, k := range rows {
		wants[i] = store.Want{Job: k.Job, Order: k.Job}
	}
	return d.transact(ctx, wants, func(l *store.Loaded) (plans []store.Chained, err error) {
		for _, k := range rows {
			if p := collation.Discard(k, l.Tombstones[k.Job], l.States[k.Job], l.Orders[k.Job]); p != nil {
				plans = append(plans, store.Chained{Plan: p})
			}
		}
		return plans, nil
	})
}
