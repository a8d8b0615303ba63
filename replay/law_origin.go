package replay

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// originLaw checks that every message's id derives from its cause (V11, C8). So each message
// has its origin in the entry that dispatched it, the start in the job's key or parent, a
// signal's wake-up in the wait, an outcome in the child. An interrupt may come from anywhere.
func (a *auditor) originLaw(e *journal.Entry, f *facts) {
	for i := range e.Dispatched {
		a.dispatchLaw(e, f, &e.Dispatched[i])
	}
	for i := range e.Waits {
		w := &e.Waits[i]
		if n := f.arms[w.GUID]; n != nil && n.id == w.GUID && n.Kind == journal.PauseSignal {
			continue
		}
		if _, ok := sender(e, func(leg1 journal.GUID) bool {
			return journal.DeriveWakeUp(leg1, journal.BySignal, "") == w.GUID
		}); !ok {
			a.at(V11, e, "the id of wait %s for signal %s derives from no Leg1 of this entry", w.GUID, w.Topic)
		}
	}
	if accepts := e.Kind == journal.KindLeg2 && !f.start && f.known == nil; accepts != (e.Response != nil) {
		a.at(V11, e, "the entry of kind %s says what its message brought: %t; it is the one that accepts a response: %t",
			e.Kind, e.Response != nil, accepts)
	}
	if e.Kind == journal.KindOperator || e.Kind == journal.KindDeadLetter {
		a.actedOn(e)
	}
	switch {
	case e.Kind == journal.KindOperator:
		a.operatorLaw(e)
	case f.known != nil:
		if f.known.key() != f.key {
			a.at(V11, e, "message %s is handled by %s %s, it was accepted by %s %s",
				e.GUID, f.key.Activity, f.key.DAD, f.known.Activity, f.known.DAD)
		}
	case !f.start:
		a.messageLaw(e, f)
	}
}

// messageLaw checks the id of the message that the entry handles, if it was not checked at its
// dispatch.
func (a *auditor) messageLaw(e *journal.Entry, f *facts) {
	r, row := e.Response, f.row
	if r != nil && r.Element != 0 && (r.Request.IsZero() || f.wakes(e)) {
		a.at(V11, e, "the response is that of element %d, but answers no request", r.Element)
	}
	switch {
	case f.wakes(e): // pauseLaw checks it
	case r != nil && !r.Request.IsZero():
		if want := journal.DeriveResponse(r.Request, r.Turn); e.GUID != want {
			a.at(V11, e, "the response to turn %d of request %s has id %s, not %s", r.Turn, r.Request, want, e.GUID)
		}
		if row != nil && row.Element != r.Element {
			a.at(V11, e, "the response is that of element %d, its request %s is element %d", r.Element, r.Request, row.Element)
		}
	case row == nil:
	case row.Kind == journal.MessageInterrupt && f.key != (collation.InstanceKey{DAD: rootAddress}):
		a.at(V11, e, "an interrupt is addressed to %s %s", f.key.Activity, f.key.DAD)
	case e.Kind == journal.KindStale && e.GUID != f.rowID:
		if e.GUID != journal.DeriveResponse(f.rowID, row.Turn) {
			a.at(V11, e, "the message %s does not derive from its request %s, turn %d", e.GUID, f.rowID, row.Turn)
		}
	case e.Kind == journal.KindLeg2 && row.Kind == journal.MessageOutcome:
		a.outcomeLaw(e, f)
	}
	if row != nil && row.key() != f.key {
		a.at(V11, e, "the message is handled by %s %s, its %s row is addressed to %s %s",
			f.key.Activity, f.key.DAD, row.Kind, row.Activity, row.DAD)
	}
}

// actedOn checks that an entry that acts on a row names the row's address.
func (a *auditor) actedOn(e *journal.Entry) {
	for i := range e.Updated {
		g := e.Updated[i].GUID
		if row := a.job.Rows[g]; row != nil && (row.Activity != e.Activity || string(row.DAD) != e.DAD) {
			a.at(V11, e, "an entry of kind %s about %s %s updates row %s, which is addressed to %s %s",
				e.Kind, e.Activity, e.DAD, g, row.Activity, row.DAD)
		}
	}
}

// operatorLaw checks that an operator's entry says who acted, on which row. Its id derives from
// the row, the action, and how often the row was acted on (E10).
func (a *auditor) operatorLaw(e *journal.Entry) {
	if e.Operator == nil {
		a.at(V11, e, "an operator's entry does not say who did what")
		return
	}
	if seq, again := a.operators[e.GUID]; again {
		a.at(V11, e, "the operator's action %s stands at entry %d, too", e.GUID, seq)
	}
	for i := range e.Updated {
		g := e.Updated[i].GUID
		for n := 0; e.GUID != journal.DeriveOperator(g, e.Operator.Action, n); n++ {
			if n > len(a.operators)+maxLetters {
				a.at(V11, e, "the id of the operator's action %s does not derive from row %s", e.GUID, g)
				break
			}
		}
	}
}

// maxLetters bounds how far the number of actions on a row may be ahead of the entries: one
// action may end several dead letters.
const maxLetters = 64

// outcomeLaw checks that an outcome is that of a child that its await started.
func (a *auditor) outcomeLaw(e *journal.Entry, f *facts) {
	if f.inst == nil {
		return // the row belongs to another instance
	}
	child, turn := f.inst.outcome(e.GUID)
	switch {
	case turn == 0:
		a.at(V11, e, "the outcome %s is that of no child that %s %s started", e.GUID, f.key.Activity, f.key.DAD)
	case e.Response != nil && e.Response.Child != child:
		a.at(V11, e, "the outcome says child %s, it is that of %s", e.Response.Child, child)
	case f.inst.Turn != turn || f.inst.Child.IsZero():
		a.at(V12, e, "the outcome is that of turn %d, %s %s is in turn %d and waits for an outcome: %t",
			turn, f.key.Activity, f.key.DAD, f.inst.Turn, !f.inst.Child.IsZero())
	}
}

// dispatchLaw checks the id, and the address, of one dispatched message.
func (a *auditor) dispatchLaw(e *journal.Entry, f *facts, d *journal.Dispatched) {
	switch {
	case !knownMessages[d.Kind]: // V16 has reported it
		return
	case d.Kind == journal.MessageLeg1:
		a.leg1Law(e, f, d)
		return
	}
	if leaves := leavesJob(d.Kind); d.Kind != journal.MessageStart && leaves != !d.Job.IsZero() {
		a.at(V11, e, "%s %s is addressed to job %s", d.Kind, d.GUID, d.Job)
	}
	if !d.Job.IsZero() && d.Kind != journal.MessageOutcome && (d.Activity != "" || d.DAD != string(rootAddress)) {
		a.at(V11, e, "%s %s is addressed to %s %s of another job", d.Kind, d.GUID, d.Activity, d.DAD)
	}
	if d.Kind == journal.MessageCycle && d.Topic != e.Activity {
		a.at(V11, e, "the cycle %s is that of %s, it says %s", d.GUID, e.Activity, d.Topic)
	}
	if !a.derives(e, f, d) {
		a.at(V11, e, "the id of %s %s for %s %s does not derive from message %s", d.Kind, d.GUID, d.Activity, d.DAD, e.GUID)
	}
}

// leavesJob reports whether messages of the kind always go to another job or to a wait.
func leavesJob(k journal.MessageKind) bool {
	return k == journal.MessageSignal || k == journal.MessageInterrupt || k == journal.MessageOutcome
}

// leg1Law checks the Leg1 of a successor (1.9, 1.10). That of a join comes from an entry that
// arrives there, once an arrival was taken. Any other is one segment below the pass's address.
func (a *auditor) leg1Law(e *journal.Entry, f *facts, d *journal.Dispatched) {
	dad := collation.DAD(d.DAD)
	joins, taken := false, false
	for i := range f.moves {
		m := &f.moves[i]
		if m.Activity == d.Activity && m.DAD == d.DAD &&
			activityDigits.growth(a.job.ledger(keyOf(m)), m.After)[gArrivals] > 0 {
			joins, taken = true, activityDigits[gTaken].value(m.After) > 0
		}
	}
	bad := func(format string, args ...any) {
		a.at(V11, e, "the Leg1 %s of %s %s "+format, append([]any{d.GUID, d.Activity, d.DAD}, args...)...)
	}
	switch {
	case !f.decides:
		bad("is dispatched by an entry that decides no transition")
	case joins:
		switch {
		case d.GUID != journal.DeriveJoin(e.Job, d.Activity, d.DAD):
			bad("does not derive from the join's address")
		case !taken:
			bad("is dispatched, but no arrival at the join was taken")
		case !below(dad, f.at.DAD):
			bad("is not addressed below %s or one of its ancestors", f.at.DAD)
		}
	case d.GUID != journal.DeriveLeg1(e.GUID, d.Activity, d.DAD):
		bad("does not derive from message %s", e.GUID)
	case dad != child(f.at.DAD):
		bad("is addressed at another place than below %s", f.at.DAD)
	}
}

// below reports whether dad is a prefix of at plus one segment 0.
func below(dad, at collation.DAD) bool {
	n := depth(dad) - 1
	return n >= 1 && n <= depth(at) && child(prefix(at, n)) == dad
}

// derives checks the id of a dispatched message other than a Leg1.
func (a *auditor) derives(e *journal.Entry, f *facts, d *journal.Dispatched) bool {
	own := func(match func(leg1 journal.GUID) bool) bool {
		key, ok := sender(e, match)
		return ok && key.Activity == d.Activity && string(key.DAD) == d.DAD
	}
	switch d.Kind {
	case journal.MessageStart:
		return a.startDerives(e, f, d)
	case journal.MessageRequest:
		return own(func(leg1 journal.GUID) bool { return d.GUID == journal.DeriveRequest(leg1, 0) })
	case journal.MessageAnswer:
		return own(func(leg1 journal.GUID) bool { return d.GUID == journal.DeriveResponse(leg1, 0) })
	case journal.MessageWakeUp:
		if n := f.arms[d.GUID]; n != nil {
			return d.Activity == f.key.Activity && d.DAD == string(f.key.DAD) &&
				(n.bounded() || n.Kind == journal.PauseSleep || a.job.From != nil)
		}
		return own(func(leg1 journal.GUID) bool { return d.GUID == journal.DeriveWakeUp(leg1, journal.ByTimer, "") })
	case journal.MessageCycle:
		return e.Kind == journal.KindLeg1 && d.GUID == journal.DeriveCycle(e.GUID)
	case journal.MessageSignal:
		return e.Kind == journal.KindLeg1 && d.GUID == journal.DeriveSent(e.GUID)
	case journal.MessageInterrupt:
		return d.GUID == journal.DeriveInterrupt(e.GUID, d.Job)
	case journal.MessageOutcome:
		p := a.job.Parent
		return p != nil && d.Job == p.Job && d.Activity == p.Activity && d.DAD == p.DAD &&
			d.GUID == journal.DeriveOutcome(e.Job.Start(), p.Turn)
	}
	return false
}

// startDerives checks a start. This job's is in its first entry. A child's comes from the Leg1
// of its await, from the outcome of a failed child before it, or from a suspension that names
// it. The start of a job with compensations comes from what ends their function.
func (a *auditor) startDerives(e *journal.Entry, f *facts, d *journal.Dispatched) bool {
	switch {
	case e.Kind == journal.KindCreated:
		return d.GUID == e.Job.Start() && d.Job.IsZero() && d.Activity == e.Activity && d.DAD == e.DAD
	case d.GUID != d.Job.Start():
		return false
	case f.suspends():
		n := f.arms[d.GUID]
		return n != nil && n.Kind == journal.PauseChild
	case f.undoes[d.Job] != journal.GUID{}:
		return true
	case f.pending:
		return f.inst != nil && d.Job == journal.DeriveChild(f.inst.Leg1, f.inst.Turn+1)
	}
	_, ok := sender(e, func(leg1 journal.GUID) bool { return d.Job == journal.DeriveChild(leg1, 1) })
	return ok
}
