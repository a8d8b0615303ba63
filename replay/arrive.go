package replay

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// arrival makes up the row of a message that no entry of this job dispatched: the delivery of a
// signal, the outcome of a child, an interrupt. The entry tells its kind; the laws judge
// whether its id derives. nil: the message is none of these.
func (j *Job) arrival(e *journal.Entry, f *facts) *Row {
	inst := f.inst
	row := &Row{Activity: e.Activity, DAD: collation.DAD(e.DAD), Outside: true}
	switch e.Kind {
	case journal.KindInterrupt:
		row.Kind = journal.MessageInterrupt
		return row
	case journal.KindLeg2, journal.KindStale, journal.KindDeadLetter:
	default:
		return nil
	}
	r := e.Response
	switch {
	case e.Activity == "" && e.Kind == journal.KindDeadLetter:
		row.Kind = journal.MessageInterrupt
		return row
	case inst == nil:
		return nil
	case r != nil && r.By == journal.BySignal:
		row.Kind = journal.MessageWakeUp
	case r != nil && !r.Child.IsZero():
		row.Kind, row.child, row.Turn = journal.MessageOutcome, r.Child, r.Turn
	case e.Kind == journal.KindLeg2:
		return nil
	default:
		return j.unsaid(e, f, row)
	}
	j.waited(e, inst, row)
	return row
}

// waited sets the row's origin: the entry that registered the wait whose signal the wake-up
// brings.
func (j *Job) waited(e *journal.Entry, inst *Instance, row *Row) {
	if row.Kind != journal.MessageWakeUp {
		return
	}
	if w := j.Waits[e.GUID]; w != nil && !w.Request.IsZero() {
		row.Origin = w.Origin
	} else if _, w := j.waitOf(inst); w != nil {
		row.Origin = w.Origin
	}
}

// unsaid finds out what a message is whose entry does not say what it brought, because it is
// stale or held.
func (j *Job) unsaid(e *journal.Entry, f *facts, row *Row) *Row {
	inst := f.inst
	if child, turn := inst.outcome(e.GUID); turn > 0 {
		row.Kind, row.child, row.Turn = journal.MessageOutcome, child, turn
		return row
	}
	g, p := j.resolvedWait(e.GUID)
	switch {
	case p != nil && p.Kind == journal.PauseChild:
		row.Kind, row.child = journal.MessageOutcome, journal.JobID(g)
	case p != nil && p.Kind == journal.PauseSignal && e.GUID == g, f.undelivered[e.GUID] != nil,
		!inst.Repeat && e.GUID == inst.waitID():
		row.Kind = journal.MessageWakeUp
		j.waited(e, inst, row)
	default:
		return nil
	}
	return row
}

// undelivered derives the wake-ups whose signals the entry names without handing them over.
func (j *Job) undelivered(e *journal.Entry) map[journal.GUID]*journal.Delivery {
	if len(e.Undelivered) == 0 {
		return nil
	}
	out := make(map[journal.GUID]*journal.Delivery, len(e.Undelivered))
	for n := range e.Undelivered {
		d := &e.Undelivered[n]
		if i := j.Instances[collation.InstanceKey{Activity: d.Activity, DAD: collation.DAD(d.DAD)}]; i != nil &&
			i.Repeat {
			out[journal.DeriveSignalled(i.waitID(), d.Signal)] = d
		}
	}
	return out
}

// outcome finds the child of an await to which the outcome's id belongs, and its turn; 0: none.
func (i *Instance) outcome(g journal.GUID) (journal.JobID, int) {
	for turn := i.Turn; turn > 0; turn-- {
		child := journal.DeriveChild(i.Leg1, turn)
		if journal.DeriveOutcome(child.Start(), turn) == g {
			return child, turn
		}
	}
	return journal.JobID{}, 0
}

// waitID is the id of the wait of the instance, if it has one.
func (i *Instance) waitID() journal.GUID {
	return journal.DeriveWakeUp(i.Leg1, journal.BySignal, "")
}

// waitOf returns the open wait of an instance.
func (j *Job) waitOf(i *Instance) (journal.GUID, *Wait) {
	for _, g := range i.arms {
		if w := j.Waits[g]; w != nil {
			return g, w
		}
	}
	return journal.GUID{}, nil
}

// sender finds the Leg1 message that matches and whose work the entry did: the entry's own, or
// a folded one (C11).
func sender(e *journal.Entry, match func(leg1 journal.GUID) bool) (collation.InstanceKey, bool) {
	if e.Kind == journal.KindLeg1 && match(e.GUID) {
		return collation.InstanceKey{Activity: e.Activity, DAD: collation.DAD(e.DAD)}, true
	}
	for i := range e.Dispatched {
		if d := &e.Dispatched[i]; d.Folded != 0 && match(d.GUID) {
			return collation.InstanceKey{Activity: d.Activity, DAD: collation.DAD(d.DAD)}, true
		}
	}
	return collation.InstanceKey{}, false
}

// attributed is sender for the fold: if nothing matches, it returns the entry's own instance.
func attributed(e *journal.Entry, match func(leg1 journal.GUID) bool) collation.InstanceKey {
	if key, ok := sender(e, match); ok {
		return key
	}
	return collation.InstanceKey{Activity: e.Activity, DAD: collation.DAD(e.DAD)}
}
