package replay_test

import (
	"testing"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// tableLie changes the tables beside honest entries.
type tableLie struct {
	base   func() *replaytest.Journal
	check  replay.Check
	words  string
	change func(s *replay.Stored)
}

func onWait(change func(w *collation.Wait)) func(s *replay.Stored) {
	return func(s *replay.Stored) { edit(s.Waits, anyone, change) }
}

func isWait(journal.GUID, collation.Wait) bool { return true }

// waitTables change waits, open elements and what is on its way. In oneTicked a pass was
// consumed and the wait is open; in oneListed two elements are open; in awaitingOne a child is
// awaited.
var waitTables = map[string]tableLie{
	"V6 open elements": {oneListed, replay.V6, "1 elements of w ,0,0 are stored as open, the entries give 2", func(s *replay.Stored) {
		s.Open[instance("w", ",0,0")]--
	}},
	"V6 open elements deleted": {oneListed, replay.V6, "0 elements of w ,0,0 are stored as open, the entries give 2", func(s *replay.Stored) { clear(s.Open) }},
	"V6 open elements of nobody": {oneListed, replay.V6, "no entry wrote them", func(s *replay.Stored) {
		s.Open[instance("x", ",0,0")] = 1
	}},
	"V10 an element's number": {oneListed, replay.V10, "element of row", func(s *replay.Stored) {
		edit(s.Rows, func(_ journal.GUID, r collation.Row) bool { return r.Element == 1 }, func(r *collation.Row) { r.Element = 2 })
	}},
	"V10 an element deleted": {oneListed, replay.V10, "no request row", func(s *replay.Stored) {
		for g, r := range s.Rows {
			if r.Element == 2 {
				delete(s.Rows, g)
			}
		}
	}},
	"V10 a signal that no wait had": {oneTicked, replay.V10, "must not stand", func(s *replay.Stored) {
		for _, w := range s.Waits {
			arrive(s, wake(&w, journal.GUID{7}, collation.CodePass))
		}
		edit(s.Rows, anyone, func(r *collation.Row) { r.GUID[0] ^= 1 })
		rekey(s)
	}},
	"V10 an outcome of no child": {awaitingOne, replay.V10, "must not stand", func(s *replay.Stored) {
		arrive(s, collation.Row{GUID: journal.GUID{9}, Kind: journal.MessageOutcome, Activity: "a", DAD: ",0,0", Turn: 1})
	}},
	"V10 an interrupt of an activity": {awaitingOne, replay.V10, "must not stand", func(s *replay.Stored) {
		arrive(s, collation.Row{GUID: journal.GUID{9}, Kind: journal.MessageInterrupt, Activity: "a", DAD: ",0,0"})
	}},
	"V13 a wait deleted": {oneTicked, replay.V13, "registered by entry 3 and not ended", func(s *replay.Stored) { clear(s.Waits) }},
	"V13 a wait too many": {oneTicked, replay.V13, "must not stand; it was never dispatched", func(s *replay.Stored) {
		s.Waits[journal.GUID{7}] = collation.Wait{Activity: "h", DAD: ",0,0"}
	}},
	"V13 a wait's topic":      {oneTicked, replay.V13, "topic", onWait(func(w *collation.Wait) { w.Topic = "x" })},
	"V13 a wait's key":        {oneTicked, replay.V13, "key", onWait(func(w *collation.Wait) { w.Key = "x" })},
	"V13 a wait's address":    {oneTicked, replay.V13, "address", onWait(func(w *collation.Wait) { w.DAD = ",0" })},
	"V13 a wait's repetition": {oneTicked, replay.V13, "repetition", onWait(func(w *collation.Wait) { w.Repeat = false })},
	"V13 a wait's origin":     {oneTicked, replay.V13, "origin", onWait(func(w *collation.Wait) { w.Origin = 2 })},
	"V13 a wait's count":      {oneTicked, replay.V13, "number of the last signal", onWait(func(w *collation.Wait) { w.Count = 0 })},
	"V13 a wait after its end": {oneTicked, replay.V13, "and so is the signal that ended it", func(s *replay.Stored) {
		for _, w := range s.Waits {
			arrive(s, wake(&w, journal.GUID{7}, collation.CodeOK))
		}
	}},
}

// awaitingOne is awaiting, up to the start of its child.
func awaitingOne() *replaytest.Journal { return awaiting(2)[0] }

func arrive(s *replay.Stored, r collation.Row) { s.Rows[r.GUID] = r }

// rekey puts rows under the ids that they have.
func rekey(s *replay.Stored) {
	rows := s.Rows
	s.Rows = make(map[journal.GUID]collation.Row)
	for _, r := range rows {
		s.Rows[r.GUID] = r
	}
}

// wake is the wake-up that a signal's delivery to the wait writes.
func wake(w *collation.Wait, signal journal.GUID, code int) collation.Row {
	row, _ := w.Deliver(&collation.Signal{GUID: signal, Topic: w.Topic, Key: w.Key, Code: code, Payload: []byte(`null`)}, 1, collation.Mode{})
	return row
}

// V6, V10, V13: the tables of what is awaited are compared with the entries (J1).
func TestCorruptWaitsFailExactlyTheirCheck(t *testing.T) {
	t.Parallel()
	for name, c := range waitTables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireTampered(t, c.base(), c.change, c.check, 0, c.words)
		})
	}
}

// A message on its way to a job has a row before any entry mentions it, and its id derives from
// what the job waits for.
func TestArrivalsAreNoFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base   func() *replaytest.Journal
		change func(s *replay.Stored)
	}{
		"a pass": {oneTicked, func(s *replay.Stored) {
			edit(s.Waits, isWait, func(w *collation.Wait) { arrive(s, wake(w, journal.GUID{7}, collation.CodePass)); w.Count++ })
		}},
		"the signal that ends": {oneTicked, func(s *replay.Stored) {
			for _, w := range s.Waits {
				arrive(s, wake(&w, journal.GUID{7}, collation.CodeOK))
			}
			clear(s.Waits)
		}},
		"an outcome": {awaitingOne, func(s *replay.Stored) {
			j := awaitingOne()
			d := j.Entries()[2].Dispatched[0]
			arrive(s, collation.Row{
				GUID: collation.OutcomeGUID(d.GUID, 1), Kind: journal.MessageOutcome, Activity: "a", DAD: ",0,0", Turn: 1, Origin: 4,
			})
		}},
		"an interrupt": {awaitingOne, func(s *replay.Stored) {
			arrive(s, collation.Row{GUID: journal.GUID{9}, Kind: journal.MessageInterrupt, DAD: ",0"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := c.base()
			c.change(j.Stored)
			requireClean(t, j, true)
		})
	}
}
