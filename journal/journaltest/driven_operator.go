package journaltest

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal/store"
)

// Act carries out an operator's action on a dead letter (E10).
func (d Driven) Act(ctx context.Context, x store.Action) error {
	if err := x.Check(); err != nil {
		return err
	}
	seen, err := d.Letter(ctx, x.ID)
	if err != nil {
		return err
	}
	return d.transact(ctx, []store.Want{{Job: seen.Job, Row: seen.Row, Letter: x.ID}}, func(a *attempt) error {
		letter, st := a.Letters[x.ID], a.States[seen.Job]
		if letter == nil {
			return fmt.Errorf("%w: dead letter %d", store.ErrNotFound, x.ID)
		}
		p, need, err := collation.Act(st, letter, &x, effectMode)
		switch {
		case err != nil || a.lacks(seen.Job, need):
		case st == nil:
			a.write(p)
		default:
			a.enter(&st.Job, p)
		}
		return err
	})
}

// TurnOverdue ends requests that are past their time (E9), and returns their number.
func (d Driven) TurnOverdue(ctx context.Context, limit int) (n int, err error) {
	late, err := d.Late(ctx, limit)
	for i := 0; i < len(late) && err == nil; i++ {
		k, turned := late[i], false
		err = d.transact(ctx, []store.Want{{Job: k.Job, Row: k.GUID}}, func(a *attempt) error {
			st := a.States[k.Job]
			if st == nil {
				return nil
			}
			p := collation.Overdue(st, k.GUID, effectMode)
			if turned = p != nil; turned {
				a.enter(&st.Job, p)
			}
			return nil
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
	return d.transact(ctx, nil, func(a *attempt) error { a.write(collation.WriteDeadLetter(letter)); return nil })
}

// Discard deletes rows whose job is only a tombstone (C5) or was cancelled before it began. Rows
// of existing jobs stay.
func (d Driven) Discard(ctx context.Context, rows []collation.RowKey) error {
	wants := make([]store.Want, len(rows))
	for i, k := range rows {
		wants[i] = store.Want{Job: k.Job, Order: k.Job}
	}
	return d.transact(ctx, wants, func(a *attempt) error {
		for _, k := range rows {
			if p := collation.Discard(k, a.Tombstones[k.Job], a.States[k.Job], a.Orders[k.Job]); p != nil {
				a.write(p)
			}
		}
		return nil
	})
}
