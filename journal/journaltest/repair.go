package journaltest

import (
	"context"
	"fmt"
	"iter"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var repairs = cases{
	"what is dropped is inserted anew, digit for digit (S11)":      repairSame,
	"digits shrink, and rows come and go, as the plan says (S11)":  repairOther,
	"a row, a wait or an effect that has changed is named (S11)":   repairLost,
	"an open job, and one that has moved on, are not written (C3)": repairOpen,
}

// Repair writes the tables of a job anew as they are (S11), as an operator's repair does with
// what the journal gives.
func (d Driven) Repair(ctx context.Context, id journal.JobID) error {
	r, rows, err := d.Repairing(ctx, id)
	if err != nil {
		return err
	}
	return d.repair(ctx, r, rows)
}

func (d Driven) repair(ctx context.Context, r *collation.Repairing, rows []store.RowGuard) error {
	return d.transact(ctx, []store.Want{{Job: r.Stored.ID}}, func(a *attempt) error {
		st := a.States[r.Stored.ID]
		if st == nil {
			return fmt.Errorf("%w: job %s", store.ErrNotFound, r.Stored.ID)
		}
		p, err := collation.Repaired(st, r, effectMode)
		if err != nil {
			return err
		}
		x := store.Chain(&st.Job, p)
		x.Guard = &store.Guard{State: r.Stored.State, Semaphore: r.Stored.Semaphore, Head: r.Stored.Head, Rows: rows}
		a.plans = append(a.plans, x)
		return nil
	})
}

// Repairing is the decision that writes the tables of a job anew as they are.
func (d Driven) Repairing(ctx context.Context, id journal.JobID) (*collation.Repairing, []store.RowGuard, error) {
	var s *store.Stored
	if err := d.Audit(ctx, id, func(x *store.Stored, _ iter.Seq2[journal.Record, error]) error { s = x; return nil }); err != nil {
		return nil, nil, err
	}
	r := &collation.Repairing{
		Who: "suite", Reason: "drawn", Stored: s.Job, Head: s.Job.Head, Semaphore: s.Job.Semaphore, State: s.Job.State,
		Differences: []journal.Difference{{Table: "jobs", Row: id.String(), Column: "semaphore", Stored: "9", Journal: "1"}},
	}
	if r.State == journal.JobQuarantined {
		r.State = journal.JobOpen
	}
	for key, i := range s.Instances {
		r.Drop.Instances = append(r.Drop.Instances, key)
		r.Instances = append(r.Instances, collation.LedgerWrite{
			Key: key, New: true, Join: i.Ledger.Arrivals() > 0 || i.Ledger.JoinTaken(), After: i.Ledger, ResultSeq: i.ResultSeq, Code: i.Code, More: i.More,
		})
	}
	for g, w := range s.Waits {
		r.Drop.Waits = append(r.Drop.Waits, collation.CancelledWait{GUID: g, Count: w.Count})
		r.Waits = append(r.Waits, w)
	}
	for g, w := range s.ResolvedWaits {
		r.Drop.Resolved = append(r.Drop.Resolved, g)
		r.Resolved = append(r.Resolved, w)
	}
	var rows []store.RowGuard
	for g, row := range s.Rows {
		rows = append(rows, store.RowGuard{GUID: g, Rev: row.Rev})
		r.Rows.Update = append(r.Rows.Update, row)
	}
	return r, rows, nil
}

// quarantined is a job that is out of service, with a request and an effect.
func (b *bench) quarantined() journal.JobID {
	b.Helper()
	r := b.asked()
	e := at("pay", store.ClassGuarded, "")
	e.Key = digest(1)
	b.startEffect(b.lease(r, "w"), e)
	b.quarantine(r.Job)
	return r.Job
}

// tables reads what is stored of a job.
func (b *bench) tables(id journal.JobID) *store.Stored {
	b.Helper()
	var out *store.Stored
	require.NoError(b, b.s.Audit(b.ctx(), id, func(x *store.Stored, _ iter.Seq2[journal.Record, error]) error { out = x; return nil }))
	out.Beside = nil // it reads, and is not compared
	return out
}

func repairSame(b *bench) {
	id := b.quarantined()
	before := b.tables(id)
	require.NoError(b, b.s.Repair(b.ctx(), id))
	after := b.tables(id)
	require.Equal(b, journal.JobOpen, after.Job.State)
	require.Equal(b, before.Job.Head.Seq+1, after.Job.Head.Seq)
	for g, row := range before.Rows {
		row.Rev++
		before.Rows[g] = row
	}
	after.Job = before.Job
	require.Equal(b, before, after)
}

func repairOther(b *bench) {
	b.odd = true
	id := b.quarantined()
	r, rows, err := b.s.Repairing(b.ctx(), id)
	require.NoError(b, err)
	for i := range r.Instances {
		if x := &r.Instances[i]; x.Key == workKey {
			x.After = 1_000_000_000_000
		}
	}
	g := guid(7)
	row := r.Rows.Update[0]
	r.Rows.Update, r.Rows.Delete = nil, []journal.GUID{row.GUID}
	row.GUID = g
	r.Rows.Insert = []collation.Row{row}
	r.Waits = append(r.Waits, collation.Wait{GUID: g, Job: id, Activity: "work", DAD: ",0,0", Topic: "paid", Key: "k"})
	r.Receipts = []collation.ReceiptWrite{{GUID: g, New: true, After: 11_000_000_001, Verdict: journal.VerdictHandled, Seq: 2}}
	r.Resolved = []collation.ResolvedWait{{Request: g, GUID: guid(8), PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "nap", Position: "1"}, Seq: 2}}
	r.Drop.Effects = []collation.DroppedEffect{{Key: digest(1), State: collation.EffectStarted, Fence: 1}}
	r.Effects = []collation.Effect{{
		EffectRow: collation.EffectRow{Key: digest(1), Name: "pay", Class: collation.ClassGuarded, State: collation.EffectCompleted, Result: []byte(`1`), Fence: 1},
		Request:   g, Seq: 1,
	}}
	require.NoError(b, b.s.repair(b.ctx(), r, rows))
	t := b.tables(id)
	require.Equal(b, collation.ActivityLedger(1_000_000_000_000), t.Instances[workKey].Ledger)
	require.Equal(b, store.StoredReceipt{Ledger: 11_000_000_001, Verdict: journal.VerdictHandled}, t.Receipts[g])
	require.Len(b, t.Rows, 1)
	require.Equal(b, row.Body, t.Rows[g].Body)
	require.Equal(b, "paid", t.Waits[g].Topic)
	require.Equal(b, r.Resolved[0], t.ResolvedWaits[guid(8)])
	require.Len(b, got(b.s.Pauses(b.ctx(), id, g))(b), 1)
	require.Equal(b, `1`, string(t.Effects[0].Result))

	b.quarantine(id)
	r, rows, err = b.s.Repairing(b.ctx(), id)
	require.NoError(b, err)
	r.Drop.Receipts, r.Waits, r.Resolved = []journal.GUID{g}, nil, nil
	require.NoError(b, b.s.repair(b.ctx(), r, rows))
	t = b.tables(id)
	require.Empty(b, t.Waits)
	require.Empty(b, t.ResolvedWaits)
	require.Empty(b, got(b.s.Pauses(b.ctx(), id, g))(b))
	require.NotContains(b, t.Receipts, g)
}

func repairLost(b *bench) {
	id := b.quarantined()
	for _, spoil := range []func(r *collation.Repairing, rows []store.RowGuard){
		func(_ *collation.Repairing, rows []store.RowGuard) { rows[0].Rev++ },
		func(r *collation.Repairing, _ []store.RowGuard) {
			r.Drop.Waits = append(r.Drop.Waits, collation.CancelledWait{GUID: guid(9)})
		},
		func(r *collation.Repairing, _ []store.RowGuard) {
			r.Drop.Effects = []collation.DroppedEffect{{Key: digest(1), State: collation.EffectCompleted, Fence: 1}}
		},
	} {
		before := b.tables(id)
		r, rows, err := b.s.Repairing(b.ctx(), id)
		require.NoError(b, err)
		spoil(r, rows)
		require.ErrorIs(b, b.s.repair(b.ctx(), r, rows), store.ErrLost)
		require.Equal(b, before, b.tables(id))
	}
}

func repairOpen(b *bench) {
	id := b.jobs(1)[0]
	require.ErrorIs(b, b.s.Repair(b.ctx(), id), collation.ErrAction)
	other := b.quarantined()
	r, rows, err := b.s.Repairing(b.ctx(), other)
	require.NoError(b, err)
	require.NoError(b, b.s.Repair(b.ctx(), other))
	require.ErrorIs(b, b.s.repair(b.ctx(), r, rows), store.ErrStale)
}
