package engine_test

import (
	"context"
	"iter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/replay"
)

// verify holds that nothing is left of the jobs, all of which have ended (I4, I6),
// and that the journal of each proves what the tables hold (2.5).
func (r *rig) verify() {
	r.t.Helper()
	ctx := context.Background()
	for id, err := range r.store.AuditJobs(ctx, nil) {
		require.NoError(r.t, err)
		v := r.view(id)
		for n := 0; n < 3600 && len(v.Rows) > 0; n++ { // messages that come too late for a job
			time.Sleep(time.Second) // the bubble's clock
			v = r.view(id)
		}
		require.Empty(r.t, v.Rows)
		require.Empty(r.t, v.Waits)
		require.Zero(r.t, v.Semaphore)
		err = r.store.Audit(ctx, id, func(s *store.Stored, records iter.Seq2[journal.Record, error]) error {
			j := &s.Job
			report, err := replay.Verify(replay.Header{
				Space: j.Space, Job: j.ID, Key: j.Key, Generation: j.Generation, Head: j.Head, Flow: s.FlowDigest,
			}, stored(s), records)
			if err == nil {
				require.False(r.t, report.Violated(), "job %s: %+v", j.Key, report.First)
			}
			return err
		})
		require.NoError(r.t, err)
	}
}

func stored(s *store.Stored) *replay.Stored {
	t := &replay.Stored{
		State: s.Job.State, Semaphore: s.Job.Semaphore, Instances: s.Instances, Open: s.Open,
		Receipts: make(map[journal.GUID]replay.StoredReceipt, len(s.Receipts)), Rows: s.Rows, Waits: s.Waits,
	}
	for g, x := range s.Receipts {
		t.Receipts[g] = replay.StoredReceipt{Ledger: x.Ledger, Verdict: x.Verdict}
	}
	for i := range s.Effects {
		e := &s.Effects[i]
		t.Effects = append(t.Effects, replay.StoredEffect{
			Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, State: replay.EffectState(e.State),
			Result: replay.ResultDigest(e.Result, e.Error),
		})
	}
	return t
}
