package engine

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal/store"
)

// Interrupt inserts the row of an interrupt under the lock of its job; for a closed job it only
// records that the interrupt came too late (W12). fresh is false if the interrupt is known
// already: nothing is written then (1.11). Errors: store.ErrNotFound: there is no job, or only
// its tombstone. store.ErrRejected: the row is no interrupt. store.ErrUnavailable: nothing was
// sent. store.ErrUnknown: it may have been.
func (c *Committer) Interrupt(ctx context.Context, row collation.Row) (fresh bool, err error) {
	var done bool // the batch sets it, whether the caller waits or not
	x := &call{
		name: "interrupt",
		want: func() []store.Want {
			return []store.Want{{Job: row.Job, Row: row.GUID, Receipt: row.GUID, Known: row.GUID}}
		},
		decide: func(b *batch) (err error) {
			done, err = b.interrupt(row)
			return err
		},
	}
	if c.do(ctx, x); x.err != nil {
		return false, x.err
	}
	return done, nil
}

func (b *batch) interrupt(row collation.Row) (fresh bool, err error) {
	st := b.loaded.States[row.Job]
	switch {
	case st == nil && b.loaded.Busy[row.Job]:
		return false, store.ErrBusy
	case st == nil:
		return false, fmt.Errorf("%w: job %s", store.ErrNotFound, row.Job)
	}
	_, known := b.loaded.Known[row.GUID]
	p, err := collation.Interrupt(st, row, known, b.mode)
	if err != nil {
		return false, fmt.Errorf("%w: %w", store.ErrRejected, err)
	}
	if p == nil {
		return false, nil
	}
	st.Apply(p)
	for _, x := range p.Signals {
		b.loaded.Known[x.GUID] = x.State
	}
	b.plans = append(b.plans, store.Chained{Plan: p})
	return true, nil
}
