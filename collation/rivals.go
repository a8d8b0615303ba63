package collation

// Rivals are messages that can end the same activity: the first that is accepted cancels the
// others. This code reads the rows and waits of the others, decides who was first, and writes
// that those rows and waits are gone.

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// arbitrate decides whether a message may still end, or pass, an activity that waits for a
// signal, a timer or a child: "" if it may. The first accepted message cancels the rows of the
// others in the same commit, see cancelRivals. A signal has won when its delivery ended the
// wait (1.11).
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

// cancelRivals cancels, in the commit that accepts the ending message, what else could end the
// activity: timer, bound, wait, the start of the next child (1.7).
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
	// A signal that ends the hook has ended the wait with its delivery.
	if b.act.Topic != "" && b.response.By != journal.BySignal {
		b.cancelWait(WakeUpGUID(inst.Leg1, journal.BySignal, ""))
	}
	if awaits(b.act) && b.m.Kind != journal.MessageOutcome {
		b.cancelRow(RowKey{child, child.Start()})
	}
	return b.missing()
}

// cancelPauses cancels what an ended function still waits for (1.7), and orders its
// compensations if it did not run them itself.
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

// cancelPause cancels the rows and the wait of a pause.
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

// cancelRow cancels a row that still exists: a timer, or the start of a child that has not
// begun. The message's own row ends by itself. A need is put off, so that all rivals are looked
// at; the caller returns missing.
func (b *builder) cancelRow(k RowKey) {
	if k.GUID == b.m.Row {
		return
	}
	row, _ := b.stands(k)
	if row != nil && (k.Job == b.m.Job || row.Sender == b.m.Job) {
		b.gone = append(b.gone, gone{key: k, dead: row.Dead, why: cancelledByEnd})
	}
}

// cancelWait cancels a wait that is still open. A need is put off, too.
func (b *builder) cancelWait(g journal.GUID) {
	if w, _ := b.waiting(g); w != nil {
		b.gone = append(b.gone, gone{key: RowKey{b.m.Job, g}, wait: w, why: cancelledByEnd})
	}
}
