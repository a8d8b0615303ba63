package engine

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
)

// Repair writes the tables of a job as its journal gives them (S11). rows are the rows that the
// decision read, with their revs. Errors: store.ErrStale: the job or one of its rows has changed
// since it was read, so read it again. collation.ErrAction: the job is open.
// store.ErrUnavailable: nothing was changed. store.ErrUnknown: it may have been repaired.
func (c *Committer) Repair(ctx context.Context, r *collation.Repairing, rows []store.RowGuard) error {
	x := &repair{Repairing: r, rows: rows}
	one := &call{name: "repair", wants: x.want, decides: x.decide, lost: func(*store.LostError) { x.changed = true }}
	if c.do(ctx, one); one.err != nil {
		return fmt.Errorf("repair: %w", one.err)
	}
	return nil
}

// repair is an operator's repair. It locks the job. It decides by collation.Repaired. It writes
// the tables and an entry, if neither the job nor its rows have changed since they were read.
type repair struct {
	*collation.Repairing
	rows    []store.RowGuard
	changed bool
}

func (x *repair) want() []store.Want { return []store.Want{{Job: x.Stored.ID}} }

func (x *repair) decide(b *batch) error {
	st, err := b.job(x.Stored.ID)
	switch {
	case err != nil:
		return err
	case x.changed:
		return fmt.Errorf("%w: a row of the job has changed since it was read", store.ErrStale)
	}
	p, err := collation.Repaired(st, x.Repairing, b.mode)
	if err != nil {
		return err
	}
	guard := &store.Guard{State: st.Job.State, Semaphore: st.Job.Semaphore, Head: st.Job.Head, Rows: x.rows}
	st.Job.Head = x.Head
	chained := store.Chain(&st.Job, p)
	chained.Guard = guard
	st.Apply(p)
	b.plans = append(b.plans, chained)
	return nil
}
