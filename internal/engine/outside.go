package engine

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
)

// Interrupted is what became of an interrupt.
type Interrupted struct {
	Key    string // of the job
	Fresh  bool   // the interrupt was not known: this call has sent it, or met a closed job
	Closed bool   // the job had ended
}

// Interrupt inserts the row of an interrupt under the lock of its job; for a closed job it only
// records that the interrupt came too late (W12). asks says that the login may write rows and no
// records: then an engine records that (S8). If the interrupt is known already nothing is written
// (1.11). Errors: store.ErrNotFound: there is no job, or only its tombstone. store.ErrRejected: the
// row is no interrupt. store.ErrUnavailable: nothing was sent. store.ErrUnknown: it may have been.
func (c *Committer) Interrupt(ctx context.Context, row collation.Row, asks bool) (Interrupted, error) {
	record := collation.RowKey{Job: row.Job, GUID: row.GUID}
	var out Interrupted // the batch sets it, whether the caller waits or not
	x := &call{
		name: "interrupt",
		wants: func() []store.Want {
			return []store.Want{{Job: row.Job, Row: row.GUID, Receipt: row.GUID, Known: record}}
		},
		decides: func(b *batch) (err error) {
			out, err = b.interrupt(row, asks)
			return err
		},
	}
	if c.do(ctx, x); x.err != nil {
		return Interrupted{}, x.err
	}
	return out, nil
}

func (b *batch) interrupt(row collation.Row, asks bool) (Interrupted, error) {
	st, err := b.job(row.Job)
	if err != nil {
		return Interrupted{}, err
	}
	out := Interrupted{Key: st.Job.Key, Closed: st.Job.State.Closed()}
	record := collation.RowKey{Job: row.Job, GUID: row.GUID}
	_, known := b.loaded.Known[record]
	p, err := collation.Interrupt(st, row, known, asks, b.mode)
	if err != nil {
		return Interrupted{}, fmt.Errorf("%w: %w", store.ErrRejected, err)
	}
	if p == nil {
		return out, nil
	}
	st.Apply(p)
	for _, x := range p.Signals { // its own
		b.loaded.Known[record] = x.State
	}
	b.write(p)
	out.Fresh = true
	return out, nil
}
