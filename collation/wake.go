package collation

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// arbitrate says whether a message may still end, or pass, an activity that
// waits for a signal, a timer or a child: "" if it may. Whoever is accepted first
// takes the others' licences away in the same commit, see cancelRivals; a signal has
// won when its delivery ended the wait (1.11).
func (b *builder) arbitrate(inst *Instance) (Outcome, error) {
	switch {
	case b.wakes():
		return b.arbitrateWake()
	case inst.Leg1.IsZero():
		return "", nil
	case awaits(b.act):
		return b.arbitrateChild(inst), nil
	case b.act.Type != flow.TypeHook || b.act.Topic == "":
		return "", nil
	}
	bySignal := b.m.Kind == journal.MessageWakeUp && b.m.Response.By == journal.BySignal
	if !bySignal {
		verdict, err := b.still(WakeUpGUID(inst.Leg1, journal.BySignal, ""))
		if verdict != "" || err != nil {
			return verdict, err
		}
	}
	if b.act.Repeat && b.m.Response.Kind == journal.ResponseTerminal {
		return b.afterPasses(bySignal)
	}
	return "", nil
}

// still lets a rival of a signal in while the wait stands.
func (b *builder) still(wait journal.GUID) (Outcome, error) {
	w, err := b.waiting(wait)
	if w == nil {
		return Stale, err // the signal was first
	}
	return "", nil
}

// afterPasses lets the message that ends a repeating hook wait for the passes
// before it.
func (b *builder) afterPasses(bySignal bool) (Outcome, error) {
	if err := b.everything(); err != nil {
		return "", err
	}
	for g, row := range b.s.Rows {
		if row == nil || g == b.m.Row || row.Kind != journal.MessageWakeUp || (InstanceKey{row.Activity, row.DAD}) != b.key {
			continue
		}
		r, err := journal.DecodeResponse(row.Body)
		if err == nil && r.By == journal.BySignal && (!bySignal || r.Number < b.m.Response.Number) {
			return Later, nil
		}
	}
	return "", nil
}

// arbitrateChild lets an outcome answer for the child that the await is in the
// turn of, and the await's bound end it where no outcome is being handled.
func (b *builder) arbitrateChild(inst *Instance) Outcome {
	switch {
	case b.m.Kind == journal.MessageOutcome && b.m.Response.Child != inst.Child:
		return Stale
	case b.m.Kind != journal.MessageOutcome && inst.Child == (journal.JobID{}):
		return Later
	}
	return ""
}

// awaits reports an activity that a child answers.
func awaits(a *flow.Activity) bool { return a.Type == flow.TypeAwait }

// retryChild orders the next child after one that failed, due at the retry time
// (1.11).
func (b *builder) retryChild() error {
	inst, err := b.instance(b.key)
	if err != nil {
		return err
	}
	at := b.s.Now + retryDelay(b.act.Retry, inst.Try, 0, b.m.GUID)
	inst.Turn++
	inst.Try++
	inst.Child = ChildID(inst.Leg1, inst.Turn)
	scope, err := b.inputs(b.act, b.key.DAD)
	if err != nil {
		return err
	}
	row, err := b.order(scope, b.key, b.act, inst.More, at)
	if err != nil { // an activity that did not run before may have run by now
		row, err = b.ordered(b.key, b.act, inst.More, &StartOrder{Input: []byte("null"), Fault: short(err)}, at)
	}
	if err != nil {
		return err
	}
	b.put(b.key, inst)
	b.sendAt(row, at)
	b.end()
	return nil
}
