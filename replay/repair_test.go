package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// A repair opens the job again, and does nothing else by the journal (S11).
func TestARepairOpensTheJobAgain(t *testing.T) {
	t.Parallel()
	require.Equal(t, journal.JobOpen, requireClean(t, made("repaired"), false).State)
}

// Every difference of the tables is listed, apart from what the journal breaks.
func TestDifferencesAreListed(t *testing.T) {
	t.Parallel()
	j := made("halfway")
	j.Stored.Semaphore = 9
	alter(j.Stored.Rows, isRequest, func(r *collation.Row) { r.Turn, r.Attempt = 5, 6 })
	r := j.Verify(true)
	require.Nil(t, r.Broken)
	var all [][2]string
	for _, d := range r.Differences {
		all = append(all, [2]string{d.Table, d.Column})
	}
	require.Equal(t, [][2]string{{"jobs", "semaphore"}, {"dispatches", "turn"}, {"dispatches", "attempt"}}, all)
	require.Equal(t, "9", r.Differences[0].Stored)
	require.Zero(t, r.Unlisted)
}
