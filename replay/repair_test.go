package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// repaired is a job that was quarantined at entry 6 and repaired by entry 7.
func repaired(change func(e *journal.Entry)) *replaytest.Journal {
	return halfway().Lie(func(entries []*journal.Entry) []*journal.Entry {
		n := 0
		for n < len(entries) && entries[n].Chain.IsZero() {
			n++
		}
		first := entries[0]
		out := append([]*journal.Entry{}, entries[:n]...)
		seq := int64(n)
		last := &journal.Entry{
			Job: first.Job, Seq: seq + 2, Kind: journal.KindOperator, DAD: ",0",
			GUID:     journal.DeriveOperator(first.Job.Start(), collation.ActionRepair, int(seq)+2),
			Operator: &journal.Operator{Action: collation.ActionRepair, Who: "ann", Reason: "the disk was replaced"},
			Repaired: []journal.Difference{{Table: "jobs", Row: "1", Column: "semaphore", Stored: "9", Journal: "1"}},
		}
		change(last)
		out = append(out, &journal.Entry{
			Job: first.Job, Seq: seq + 1, Kind: journal.KindQuarantine, GUID: journal.GUID{4}, DAD: ",0",
			Trouble: &journal.Trouble{Reason: "law", Message: "a digit is wrong"},
		}, last)
		return append(out, entries[n:]...)
	})
}

// A repair opens the job again, and does nothing else by the journal (S11).
func TestARepairOpensTheJobAgain(t *testing.T) {
	t.Parallel()
	r := requireClean(t, repaired(func(*journal.Entry) {}), false)
	require.Equal(t, journal.JobOpen, r.State)
	for name, c := range map[string]struct {
		check  replay.Check
		words  string
		change func(e *journal.Entry)
	}{
		"by an id of its own": {replay.V11, "the repair has id", func(e *journal.Entry) { e.GUID[3] ^= 1 }},
		"with a row": {replay.V10, "a repair does something else, too", func(e *journal.Entry) {
			e.Updated = []journal.Updated{{GUID: journal.GUID{9}, Kind: journal.MessageRequest}}
		}},
		"with an effect":    {replay.V10, "a repair does something else, too", func(e *journal.Entry) { e.Effect = &journal.Effect{Name: "pay", Class: "pure"} }},
		"by another action": {replay.V10, "says what it repaired", func(e *journal.Entry) { e.Operator.Action = "retry" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := repaired(c.change).Verify(false)
			require.NotNil(t, v.Result(c.check).Violation)
			require.NotNil(t, v.Broken)
		})
	}
	open := halfway().Lie(func(entries []*journal.Entry) []*journal.Entry {
		e := &journal.Entry{
			Job: entries[0].Job, Seq: 6, Kind: journal.KindOperator, DAD: ",0",
			GUID:     journal.DeriveOperator(entries[0].Job.Start(), collation.ActionRepair, 6),
			Operator: &journal.Operator{Action: collation.ActionRepair},
		}
		return append(append(append([]*journal.Entry{}, entries[:5]...), e), entries[5:]...)
	})
	require.Contains(t, open.Verify(false).Result(replay.V10).Violation.Message, "the tables of a job that is open are repaired")
}

// Every difference of the tables is listed, apart from what the journal breaks.
func TestDifferencesAreListed(t *testing.T) {
	t.Parallel()
	j := halfway()
	j.Stored.Semaphore = 9
	edit(j.Stored.Rows, isRequest, func(r *collation.Row) { r.Turn, r.Attempt = 5, 6 })
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
