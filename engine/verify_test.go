package engine_test

import (
	"context"
	"iter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// verify requires that nothing is left of the jobs, which have all ended (I4, I6), and that the
// journal of each proves what the tables hold (2.5).
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
		r.proved(id)
	}
}

// proved requires that the journal of a job proves what the tables hold.
func (r *rig) proved(id journal.JobID) {
	r.t.Helper()
	err := r.store.Audit(context.Background(), id, func(s *store.Stored, records iter.Seq2[journal.Record, error]) error {
		report, err := s.Verify(nil, records)
		if err == nil {
			require.False(r.t, report.Violated(), "job %s: %+v", s.Job.Key, report.First)
		}
		return err
	})
	require.NoError(r.t, err)
}
