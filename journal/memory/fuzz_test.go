package memory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// FuzzCursor: a cursor of a list is one that a listed job has, or refused.
func FuzzCursor(f *testing.F) {
	f.Add((&job{Job: collation.Job{ID: journal.JobID{7}, Started: 1_700_000_000_000_000}}).summary().Cursor, int64(5))
	f.Add("MTIz", int64(-1))
	f.Add("%", int64(0))
	f.Fuzz(func(t *testing.T, s string, started int64) {
		at, id, err := readCursor(s)
		if err != nil {
			require.Zero(t, id)
			require.Less(t, len(err.Error()), 600)
			return
		}
		for _, j := range []collation.Job{{Started: at, ID: id}, {Started: collation.Micros(started), ID: id}} {
			again, same, err := readCursor((&job{Job: j}).summary().Cursor)
			require.NoError(t, err)
			require.Equal(t, j.Started, again)
			require.Equal(t, j.ID, same)
		}
	})
}
