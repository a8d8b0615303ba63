package replay_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// repaired is a job that was quarantined at entry 6 and repaired by entry 7.
func repaired() *replaytest.Journal {
	return halfway().Lie(func(entries []*journal.Entry) []*journal.Entry {
		job := entries[0].Job
		return slices.Insert(entries, 5, &journal.Entry{
			Job: job, Seq: 6, Kind: journal.KindQuarantine, GUID: journal.GUID{4}, DAD: ",0",
			Trouble: &journal.Trouble{Reason: "law", Message: "a digit is wrong"},
		}, &journal.Entry{
			Job: job, Seq: 7, Kind: journal.KindOperator, DAD: ",0", GUID: journal.DeriveOperator(job.Start(), collation.ActionRepair, 7),
			Operator: &journal.Operator{Action: collation.ActionRepair, Who: "ann", Reason: "the disk was replaced"},
			Repaired: []journal.Difference{{Table: "jobs", Row: "1", Column: "semaphore", Stored: "9", Journal: "1"}},
		})
	})
}

// A repair opens the job again, and does nothing else by the journal (S11).
func TestARepairOpensTheJobAgain(t *testing.T) {
	t.Parallel()
	require.Equal(t, journal.JobOpen, requireClean(t, repaired(), false).State)
}

// Every difference of the tables is listed, apart from what the journal breaks.
func TestDifferencesAreListed(t *testing.T) {
	t.Parallel()
	j := halfway()
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
