package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// E12: what was cancelled may be named, and registered, again.
func TestNamedAgainIsNoFault(t *testing.T) {
	t.Parallel()
	e := made("moved").Entries()
	require.Equal(t, e[3].Waits, e[7].Waits)
	require.Equal(t, e[3].Dispatched[1].GUID, e[7].Dispatched[0].GUID)
}

// V11: the id of a function's child cannot be derived from its own journal, and the report says
// so. That of compensations can.
func TestJobsOfFunctions(t *testing.T) {
	t.Parallel()
	r := requireClean(t, made("invoice"), false)
	require.Contains(t, r.Result(replay.V11).Note, "the name under which a function started it")
}

// Without the rows of resolved waits, V13 says what it did not look at.
func TestResolvedWaitsThatWereNotRead(t *testing.T) {
	t.Parallel()
	j := made("rested")
	j.Stored.ResolvedWaits = nil
	require.Contains(t, requireClean(t, j, true).Result(replay.V13).Note, "are not in this input")
}

// The signal that ends a repeating hook is on its way, and a dead letter holds it: it has a row
// (V13), and a close cancels it.
func TestHeldSignalsAreNoFault(t *testing.T) {
	t.Parallel()
	signal := journal.GUID{7}
	j := made("oneTicked")
	var row collation.Row
	for _, w := range j.Stored.Waits {
		row = wake(&w, signal, collation.CodeOK)
	}
	ending := journal.Delivery{Activity: "h", DAD: ",0,0", Signal: signal, Number: 2, Ends: true}
	letter := func(entries []*journal.Entry) *journal.Entry {
		return &journal.Entry{
			Space: entries[0].Space, Job: entries[0].Job, Generation: 1, Seq: 5, Kind: journal.KindDeadLetter, GUID: row.GUID,
			Activity: "h", DAD: ",0,0", Trouble: &journal.Trouble{Reason: "stuck", Message: "refused"},
			Updated:     []journal.Updated{{GUID: row.GUID, Kind: row.Kind, NextAt: 1, Held: collation.HeldStuck}},
			Undelivered: []journal.Delivery{ending},
		}
	}
	told := j.Lie(func(entries []*journal.Entry) []*journal.Entry { return append(entries, letter(entries)) })
	row.Held = collation.HeldStuck
	arrive(told.Stored, row)
	clear(told.Stored.Waits)
	requireClean(t, told, true)

	closed := j.Lie(func(entries []*journal.Entry) []*journal.Entry {
		interrupt := journal.GUID{5}
		leg1 := entries[3].Dispatched[0].GUID
		return append(entries, letter(entries), &journal.Entry{
			Space: entries[0].Space, Job: entries[0].Job, Generation: 1, Seq: 6, Kind: journal.KindInterrupt, GUID: interrupt,
			DAD: ",0", Marks: []journal.Mark{journal.MarkWork, journal.MarkChildren, journal.MarkClosed, journal.MarkTasks},
			Receipt: 111_100_000_000, Semaphore: new(int64), Abandoned: 2, Ended: interrupt,
			CancelledByClose: []journal.GUID{leg1, row.GUID}, Undelivered: []journal.Delivery{ending},
			Close: &journal.Close{State: journal.JobInterrupted, Code: 410, Error: &journal.Failure{Class: "interrupted"}},
		})
	})
	requireClean(t, closed, false)
}
