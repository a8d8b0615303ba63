package engine

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal/store"
)

// Interrupt inserts the row of an interrupt under the lock of its job; for a closed job it only
// records that the interrupt came too late (W12). fresh is false if the interrupt is known
// already: nothing is written then (1.11). closed is true if the job had ended. Errors:
// store.ErrNotFound: there is no job, or only its tombstone. store.ErrRejected: the row is no
// interrupt. store.ErrUnavailable: nothing was sent. store.ErrUnknown: it may have been.
func (c *Committer) Interrupt(ctx context.Context, row collation.Row) (fresh, closed bool, err error) {
	var done, ended bool // the batch sets them, whether the caller waits or not
	x := &call{
		name: "interrupt",
		want: func() []store.Want {
			return []store.Want{{Job: row.Job, Row: row.GUID, Receipt: row.GUID, Known: row.GUID}}
		},
		decide: func(b *batch) (err error) {
			done, ended, err = b.interrupt(row)
			return err
		},
	}
	if c.do(ctx, x); x.err != nil {
		return false, false, x.err
	}
	return done, ended, nil
}

func (b *batch) interrupt(row collation.Row) (fresh, closed bool, err error) {
	st := b.loaded.States[row.Job]
	switch {
	case st == nil && b.loaded.Busy[row.Job]:
		return false, false, store.ErrBusy
	case st == nil:
		return false, false, fmt.Errorf("%w: job %s", store.ErrNotFound, row.Job)
	}
	closed = st.Job.State.Closed()
	_, known := b.loaded.Known[row.GUID]
	p, err := collation.Interrupt(st, row, known, b.mode)
	if err != nil {
		return false, false, fmt.Errorf("%w: %w", store.ErrRejected, err)
	}
	if p == nil {
		return false, closed, nil
	}
	st.Apply(p)
	for _, x := range p.Signals {
		b.loaded.Known[x.GUID] = x.State
	}
	b.plans = append(b.plans, store.Chained{Plan: p})
	return true, closed, nil
}
