package replay_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// onPause changes the first pause of the request's row.
func onPause(change func(p *collation.Pause)) func(s *replay.Stored) {
	return func(s *replay.Stored) {
		edit(s.Rows, isRequest, func(r *collation.Row) {
			r.Pauses = slices.Clone(r.Pauses)
			change(&r.Pauses[0])
		})
	}
}

func isRequest(_ journal.GUID, r collation.Row) bool { return r.Kind == journal.MessageRequest }

func onResolved(change func(w *collation.ResolvedWait)) func(s *replay.Stored) {
	return func(s *replay.Stored) { edit(s.ResolvedWaits, anyone, change) }
}

// functionTables change what is stored of functions. In rested a sleep has come; booking has
// compensations.
var functionTables = map[string]tableLie{
	"V13 nothing to wait for": {rested, replay.V13, "stored with 0 things that it waits for, the entries give 3", func(s *replay.Stored) {
		edit(s.Rows, isRequest, func(r *collation.Row) { r.Pauses = nil })
	}},
	"V13 a pause that did not come": {rested, replay.V13, "is stored to wait for", onPause(func(p *collation.Pause) { p.Came = false })},
	"V13 a pause that is not taken": {rested, replay.V13, "is stored to wait for", onPause(func(p *collation.Pause) { p.Taken = false })},
	"V13 a pause's name":            {suspended, replay.V13, "is stored to wait for", onPause(func(p *collation.Pause) { p.Name = "x" })},
	"V13 a pause's position":        {suspended, replay.V13, "is stored to wait for", onPause(func(p *collation.Pause) { p.Position = "9" })},
	"V13 a pause's bound":           {suspended, replay.V13, "is stored to wait for", onPause(func(p *collation.Pause) { p.Timeout = true })},
	"V13 a wait of a hook": {suspended, replay.V13, "the stored request of wait", func(s *replay.Stored) {
		edit(s.Waits, anyone, func(w *collation.Wait) { w.Request = journal.GUID{} })
	}},
	"V13 nothing came": {rested, replay.V13, `no row is stored of sleep "nap"`, func(s *replay.Stored) { clear(s.ResolvedWaits) }},
	"V13 something else came": {rested, replay.V13, "what came to a function by message", onResolved(func(w *collation.ResolvedWait) {
		w.Name = "x"
	})},
	"V13 it came by another entry": {rested, replay.V13, "what came to a function by message", onResolved(func(w *collation.ResolvedWait) { w.Seq++ })},
	"V13 it came too early": {suspended, replay.V13, "what came to a function by message", func(s *replay.Stored) {
		s.ResolvedWaits[journal.GUID{7}] = collation.ResolvedWait{GUID: journal.GUID{7}, Seq: 4}
	}},
	"V10 a timer deleted": {suspended, replay.V10, "no wakeup row", func(s *replay.Stored) {
		for g, r := range s.Rows {
			if r.Kind == journal.MessageWakeUp {
				delete(s.Rows, g)
				return
			}
		}
	}},
	"V13 the wait deleted": {suspended, replay.V13, "registered by entry 4 and not ended", func(s *replay.Stored) { clear(s.Waits) }},
	"V9 no compensations": {booking, replay.V9, "says that compensations are registered: false, the entries: true", func(s *replay.Stored) {
		edit(s.Rows, isRequest, func(r *collation.Row) { r.Undo = false })
	}},
	"V9 compensations": {suspended, replay.V9, "says that compensations are registered: true, the entries: false", func(s *replay.Stored) {
		edit(s.Rows, isRequest, func(r *collation.Row) { r.Undo = true })
	}},
	"V9 a position": {booking, replay.V9, `at "9", completed; the entries give`, func(s *replay.Stored) {
		s.Effects = slices.Clone(s.Effects)
		s.Effects[0].Position = "9"
	}},
}

// V9, V10, V13: the tables of functions are compared with the entries (J1).
func TestCorruptFunctionsFailExactlyTheirCheck(t *testing.T) {
	t.Parallel()
	for name, c := range functionTables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireTampered(t, c.base(), c.change, c.check, 0, c.words)
		})
	}
}

// E13: a request that sleeps although something has come is a lost wake-up.
func TestSleepingOnIsFound(t *testing.T) {
	t.Parallel()
	j := rested().Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[4].Updated = nil
		return entries
	})
	requireOnly(t, j.Verify(true), replay.V10, 0, `sleeps, though "nap" has come`)
}

// A message on its way to a function has a row before any entry mentions it.
func TestWakesOnTheirWayAreNoFault(t *testing.T) {
	t.Parallel()
	j := suspended()
	for _, w := range j.Stored.Waits {
		arrive(j.Stored, wake(&w, journal.GUID{7}, collation.CodeOK))
	}
	clear(j.Stored.Waits)
	child := j.Entries()[3].Dispatched[2].GUID
	arrive(j.Stored, collation.Row{GUID: collation.OutcomeGUID(child, 0), Kind: journal.MessageOutcome, Activity: "fn", DAD: ",0,0"})
	requireClean(t, j, true)
	arrive(j.Stored, collation.Row{GUID: journal.GUID{9}, Kind: journal.MessageOutcome, Activity: "fn", DAD: ",0,0"})
	requireOnly(t, j.Verify(true), replay.V10, 0, "must not stand")
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
