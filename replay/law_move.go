package replay

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// These laws judge moves that no message makes (S12): a request that is past its time, the
// release of a parked request by the end of its effect, and deliveries that no hook gets.

// overdueLaw checks the end of a request that nobody answered in time (V10, E9): its row, and
// nothing else, turns into an answer in its turn, which V12 checks.
func (a *auditor) overdueLaw(e *journal.Entry, f *facts) {
	if len(e.Updated) != 1 || !bare(e) || e.Effect != nil {
		a.at(V10, e, "an entry about a request past its time does something else, too")
		return
	}
	u := &e.Updated[0]
	if f.row == nil || u.GUID != f.rowID || f.row.Kind != journal.MessageRequest || u.Kind != journal.MessageAnswer ||
		u.Held != "" || u.NextAt <= 0 {
		a.at(V10, e, "row %s is left as %s, held %q: only a request that is past its time turns into an answer", u.GUID, u.Kind, u.Held)
	}
}

// repairs reports whether the entry is an operator's repair of the tables (S11).
func repairs(e *journal.Entry) bool {
	return e.Kind == journal.KindOperator && e.Operator != nil && e.Operator.Action == actionRepair
}

// repairLaw checks a repair (V10, V11): of a job that nobody runs, and of the tables alone, so
// that nothing changes by the journal but the state in which the job goes on.
func (a *auditor) repairLaw(e *journal.Entry) {
	if a.job.State == journal.JobOpen {
		a.at(V10, e, "the tables of a job that is open are repaired")
	}
	rest := *e
	rest.Operator = nil
	if len(e.Updated) > 0 || !bare(&rest) || e.Effect != nil {
		a.at(V10, e, "a repair does something else, too")
	}
	if want := journal.DeriveOperator(e.Job.Start(), actionRepair, int(e.Seq)); e.GUID != want {
		a.at(V11, e, "the repair has id %s, not %s", e.GUID, want)
	}
}

// rowTurn names one turn of a request.
type rowTurn struct {
	request journal.GUID
	turn    int
}

// releasedLaw checks the row that the end of an effect releases (V10, E4): that of its request,
// which was parked in that turn, once.
func (a *auditor) releasedLaw(e *journal.Entry) {
	for i := range e.Updated {
		u := &e.Updated[i]
		at := rowTurn{u.GUID, u.Turn}
		if _, parked := a.parked[at]; !parked || u.GUID != e.Chain || e.Kind == journal.KindEffectStarted ||
			u.Held != "" || u.Kind != journal.MessageRequest {
			a.at(V10, e, "effect %q releases row %s in turn %d as %s, held %q: it was not parked then, or is another's",
				e.Effect.Name, u.GUID, u.Turn, u.Kind, u.Held)
		}
		delete(a.parked, at)
	}
}

// undeliveredLaw checks the deliveries to repeating hooks that the entry does not hand over
// (V11, V13): each is refused, held or cancelled here, and its number was given to no other
// signal.
func (a *auditor) undeliveredLaw(e *journal.Entry, f *facts) {
	if len(e.Undelivered) == 0 {
		return
	}
	named := set(e.CancelledByClose...)
	if e.Kind == journal.KindStale || e.Kind == journal.KindDeadLetter {
		named[e.GUID] = true
	}
	if len(f.undelivered) != len(e.Undelivered) {
		a.at(V11, e, "%d deliveries to repeating hooks are not handed over, %d of them derive from waits of this job", len(e.Undelivered), len(f.undelivered))
	}
	for _, g := range sortedGUIDs(f.undelivered) {
		d := f.undelivered[g]
		wait := a.job.Instances[collation.InstanceKey{Activity: d.Activity, DAD: collation.DAD(d.DAD)}].waitID()
		key := signalNumber{wait, d.Number}
		switch seq, again := a.numbers[key]; {
		case !named[g]:
			a.at(V11, e, "signal %s of %s %s is said not to be handed over, its wake-up %s is neither refused nor held nor cancelled", d.Signal, d.Activity, d.DAD, g)
		case d.Number < 1:
			a.at(V13, e, "a signal of the repeating hook %s %s without a number", d.Activity, d.DAD)
		case a.job.Receipts[g] != nil: // accepted before, with steps left: signalLaw has seen its number
			continue
		case again:
			a.at(V13, e, "signal %d of %s %s again, it stands at entry %d", d.Number, d.Activity, d.DAD, seq)
		}
		if e.Kind != journal.KindDeadLetter { // that one may be handled after all
			a.numbers[key] = e.Seq
		}
	}
}

// delivered reports whether the entry cancels or refuses the delivery that has ended the wait.
func (f *facts) delivered(w *Wait) bool {
	for _, d := range f.undelivered {
		if d.Ends && d.Activity == w.Activity && d.DAD == string(w.DAD) {
			return true
		}
	}
	return false
}
