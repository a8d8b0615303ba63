package collation

// Rivals can end the same activity: the first one that is accepted cancels the
// others. They read what the others stand as, decide who was first, and write that
// rows and waits are gone.

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// arbitrate says whether a message may still end, or pass, an activity that
// waits for a signal, a timer or a child: "" if it may. Whoever is accepted first
// cancels the rows of the others in the same commit, see cancelRivals; a signal has
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

// cancelRivals takes back, in the commit that accepts the ending message, what else
// could end its activity: timer, bound, wait, the next child's start (1.7).
func (b *builder) cancelRivals(inst *Instance) error {
	if b.act.Type == flow.TypeWorker && b.row != nil && b.response.Kind == journal.ResponseTerminal {
		return b.cancelPauses()
	}
	if inst.Leg1.IsZero() || b.act.HasEach {
		return nil
	}
	child := inst.Child
	inst.Child = journal.JobID{}
	if b.response.Kind != journal.ResponseTerminal {
		return nil
	}
	if b.act.HasSleep {
		b.cancelRow(RowKey{b.m.Job, WakeUpGUID(inst.Leg1, journal.ByTimer, "")})
	}
	if b.act.Within > 0 {
		b.cancelRow(RowKey{b.m.Job, ResponseGUID(inst.Leg1, 0)})
	}
	// A signal that ends the hook took the wait with its delivery.
	if b.act.Topic != "" && b.response.By != journal.BySignal {
		b.cancelWait(WakeUpGUID(inst.Leg1, journal.BySignal, ""))
	}
	if awaits(b.act) && b.m.Kind != journal.MessageOutcome {
		b.cancelRow(RowKey{child, child.Start()})
	}
	return b.missing()
}

// cancelPauses takes back what an ended function still waits for (1.7), and has
// its compensations run where it did not run them itself.
func (b *builder) cancelPauses() error {
	for i := range b.row.Pauses {
		if p := &b.row.Pauses[i]; !p.Taken {
			b.cancelPause(p)
		}
	}
	ownEnd := b.m.Kind == journal.MessageResponse && (b.response.Code == CodeOK || b.response.Undone)
	if b.row.Undo && !ownEnd {
		message := ""
		if b.response.Error != nil {
			message = b.response.Error.Message
		}
		b.orderUndo(b.row, b.response.Code, message)
	}
	return b.missing()
}

// cancelPause takes back what stands for a pause.
func (b *builder) cancelPause(p *Pause) {
	switch p.Kind {
	case journal.PauseSleep:
		b.cancelRow(RowKey{b.m.Job, p.GUID})
	case journal.PauseSignal:
		b.cancelWait(p.GUID)
		if p.Timeout {
			b.cancelRow(RowKey{b.m.Job, TimeoutGUID(p.GUID)})
		}
	case journal.PauseChild:
		b.cancelRow(RowKey{journal.JobID(p.GUID), p.GUID})
	}
}

// cancelRow takes back a row that still stands: a timer, or the start of a child
// that has not begun. The message's own ends by itself. A need is put off: what
// else can end the activity is looked at too, and the caller ends with missing.
func (b *builder) cancelRow(k RowKey) {
	if k.GUID == b.m.Row {
		return
	}
	row, _ := b.stands(k)
	if row != nil && (k.Job == b.m.Job || row.Sender == b.m.Job) {
		b.gone = append(b.gone, gone{key: k, dead: row.Dead, why: cancelledByEnd})
	}
}

// cancelWait takes back a wait that still stands. A need is put off, too.
func (b *builder) cancelWait(g journal.GUID) {
	if w, _ := b.waiting(g); w != nil {
		b.gone = append(b.gone, gone{key: RowKey{b.m.Job, g}, wait: w, why: cancelledByEnd})
	}
}
