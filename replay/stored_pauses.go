package replay

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// comparePauses compares what the row of a request says that its function waits for (V13), and
// checks that the request is sent again once something has come (E13).
func (a *auditor) comparePauses(g journal.GUID, s *collation.Row, r *Row) {
	if len(s.Pauses) != len(r.Pauses) {
		a.differs(V13, 0, ofMessage(TableDispatches, g, "pauses", len(s.Pauses), len(r.Pauses)), "row %s (%s %s) is stored with %d things that it waits for, the entries give %d",
			g, r.Activity, r.DAD, len(s.Pauses), len(r.Pauses))
		return
	}
	came := ""
	for i, want := range a.job.StoredPauses(r) {
		if s.Pauses[i] != want {
			a.differs(V13, 0, ofMessage(TableDispatches, g, "pauses", s.Pauses[i], want), "row %s (%s %s) is stored to wait for %+v, the entries give %+v", g, r.Activity, r.DAD, s.Pauses[i],
				want)
			return
		}
		if want.Came {
			came = want.Name
		}
	}
	if came != "" && r.asleep() {
		a.report(V10, journal.MainChain, 0, "request %s of %s %s sleeps, though %q has come", g, r.Activity, r.DAD, came)
	}
}

// compareResolved compares the resolved waits (V13).
func (a *auditor) compareResolved() {
	if a.stored.ResolvedWaits == nil {
		a.note(V13, "the rows of what functions waited for are not in this input")
		return
	}
	came := a.job.Resolved()
	for _, g := range sortedGUIDs(a.stored.ResolvedWaits) {
		if s := a.stored.ResolvedWaits[g]; s != came[g] {
			want := ""
			if came[g].Seq > 0 {
				want = shown(came[g])
			}
			a.differs(V13, 0, ofMessage(TableResolved, g, "", s, want), "what came to a function by message %s is stored as %+v, the entries give %+v", g, s, came[g])
		}
	}
	for _, g := range sortedGUIDs(came) {
		if _, ok := a.stored.ResolvedWaits[g]; !ok {
			a.differs(V13, 0, ofMessage(TableResolved, g, "", "", came[g]), "no row is stored of %s %q, which came to a function by message %s", came[g].Kind, came[g].Name, g)
		}
	}
}

// Resolved lists the resolved waits of durable functions, by the message that brought each (E12).
func (j *Job) Resolved() map[journal.GUID]collation.ResolvedWait {
	came := make(map[journal.GUID]collation.ResolvedWait)
	for message, id := range j.wakers {
		r := j.Receipts[message]
		if p := j.Pauses[id]; p != nil && r != nil && r.of == id && guidDigits.set(gStep1, journal.Ledger(r.Ledger)) {
			came[message] = collation.ResolvedWait{Request: p.Request, GUID: message, PauseRef: p.PauseRef, Seq: r.Seq}
		}
	}
	return came
}

// StoredPauses is what the row of a request says that its function waits for, and what of it has
// come.
func (j *Job) StoredPauses(r *Row) []collation.Pause {
	var out []collation.Pause
	for _, id := range r.Pauses {
		p := j.Pauses[id]
		out = append(out, collation.Pause{
			PauseRef: p.PauseRef, GUID: id, Timeout: p.Kind == journal.PauseSignal && p.Due > 0, Taken: p.Taken > 0,
			Came: p.Came,
		})
	}
	return out
}

// compareUndo compares the mark on rows of functions that registered compensations (V9). The
// mark goes with the answer that ends them.
func (a *auditor) compareUndo() {
	registered := a.job.compensates()
	for _, g := range sortedGUIDs(a.stored.Rows) {
		_, ended := a.bounds[g]
		if s := a.stored.Rows[g]; s.Undo != (registered[g] && !ended) {
			a.differs(V9, 0, ofMessage(TableDispatches, g, "undo", s.Undo, registered[g] && !ended), "row %s of %s %s says that compensations are registered: %t, the entries: %t", g, s.Activity, s.DAD,
				s.Undo, registered[g])
		}
	}
}

// leftCancelled reports waits of functions that were not cancelled although no signal is on its
// way to them (V13).
func (a *auditor) leftCancelled() {
	for _, g := range sortedGUIDs(a.cancelledWaits) {
		if s, ok := a.stored.Rows[g]; !ok || s.Kind != journal.MessageWakeUp {
			a.report(V13, journal.MainChain, a.cancelledWaits[g], "the wait %s is left, neither taken back nor is there a signal on its way to it", g)
		}
	}
}
