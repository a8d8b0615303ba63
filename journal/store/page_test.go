package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// FuzzCursor: a cursor of a list is one that a listed job has, or refused.
func FuzzCursor(f *testing.F) {
	listed := func(at collation.Micros, id journal.JobID) *store.JobFilter {
		j := store.JobSummary{Job: collation.Job{Started: at, ID: id}}
		j.SetCursor()
		return &store.JobFilter{Before: j.Cursor}
	}
	f.Add(listed(1_700_000_000_000_000, journal.JobID{7}).Before, int64(5))
	f.Add("123", int64(-1))
	f.Add(".", int64(0))
	f.Fuzz(func(t *testing.T, s string, started int64) {
		at, id, err := (&store.JobFilter{Before: s}).Bound()
		if err != nil {
			require.ErrorIs(t, err, store.ErrRejected)
			require.Less(t, len(err.Error()), 600)
			return
		}
		for _, at := range []collation.Micros{at, collation.Micros(started)} {
			again, same, err := listed(at, id).Bound()
			require.NoError(t, err)
			if s != "" {
				require.Equal(t, []any{at, id}, []any{again, same})
			}
		}
	})
}
