package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// E12: what was cancelled may be named, and registered, again.
func TestNamedAgainIsNoFault(t *testing.T) {
	t.Parallel()
	j := moved()
	requireClean(t, j, true)
	e := j.Entries()
	require.Equal(t, e[3].Waits, e[7].Waits)
	require.Equal(t, e[3].Dispatched[1].GUID, e[7].Dispatched[0].GUID)
	child := function().Suspend(nap, inv).Wake("nap").Suspend(later).Wake("later").Suspend(inv).Journal()
	requireClean(t, child, true)
}

// A wait that is left without being cancelled has its signal on its way: the tables show the
// signal, a later entry mentions it, or a close cancels it.
func TestSignalsAdrift(t *testing.T) {
	t.Parallel()
	f := function().Suspend(nap, ok).Wake("nap")
	f.Send("order.ok", "order-42", 200, `{}`)
	wake := collation.PauseGUID(f.Request(), ok.PauseRef)
	requireClean(t, f.Journal(), true)
	j := f.Suspend(later).Journal()
	requireClean(t, j, true)
	requireClean(t, j, false)

	early := crossed().Lie(func(entries []*journal.Entry) []*journal.Entry { return entries[:6] })
	early.Stored.Rows[wake] = collation.Row{GUID: wake, Kind: journal.MessageWakeUp, Activity: "fn", DAD: ",0,0"}
	delete(early.Stored.Receipts, wake)
	requireClean(t, early, true)
	delete(early.Stored.Rows, wake)
	requireOnly(t, early.Verify(true), replay.V13, 6, "neither taken back nor is there a signal on its way")

	closing := function().Suspend(nap, ok).Wake("nap").Suspend(later).Interrupt("enough").Journal()
	requireClean(t, closing, true)
	left := closing.Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[5].Cancelled = entries[5].Cancelled[1:] // the wait
		return entries
	})
	requireOnly(t, left.Verify(false), replay.V13, 7, "neither taken back nor is there a signal that the close cancels")
	took := closing.Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[5].Cancelled = entries[5].Cancelled[1:]
		entries[6].CancelledByClose = append(entries[6].CancelledByClose, wake)
		return entries
	})
	requireClean(t, took, false)
}

// V11: the id of a function's child cannot be derived from its own journal, and the report says
// so. That of compensations can.
func TestJobsOfFunctions(t *testing.T) {
	t.Parallel()
	family := replaytest.Family(replaytest.Options{
		Flow:   build(begin("caller").Worker("w", "work").Transition("t", "w")),
		Others: []*flow.Flow{build(begin("child").Hook("h", flow.Sleep("1h")).Transition("t", "h"))},
		Respond: func(activity string, turn int) *journal.Response {
			if activity != "w" || turn > 1 {
				return nil
			}
			return &journal.Response{Kind: journal.ResponseSuspended, Code: 200, Pauses: []journal.Pause{replaytest.Child("c", "1", "child", `1`)}}
		},
	})
	require.Len(t, family, 2)
	child := family[1]
	r := requireClean(t, child, false)
	require.Contains(t, r.Result(replay.V11).Note, "the name under which a function started it")
	require.Equal(t, journal.JobCompleted, requireClean(t, family[0], true).State)

	// The same without anybody waiting would be a job of compensations, which this is not.
	forged := child.Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[0].Parent.Awaited = false
		last := entries[len(entries)-1]
		last.Dispatched = nil
		return entries
	})
	requireOnly(t, forged.Verify(false), replay.V11, 1, "is for the compensations of request")
}

// Without the rows of resolved waits, V13 says what it did not look at.
func TestResolvedWaitsThatWereNotRead(t *testing.T) {
	t.Parallel()
	j := rested()
	j.Stored.ResolvedWaits = nil
	require.Contains(t, requireClean(t, j, true).Result(replay.V13).Note, "are not in this input")
}

// The signal that ends a repeating hook is on its way, and a dead letter holds it: it has a row
// (V13), and a close cancels it.
func TestHeldSignalsAreNoFault(t *testing.T) {
	t.Parallel()
	signal := journal.GUID{7}
	j := oneTicked()
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
