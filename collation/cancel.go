package collation

import (
	"bytes"
	"slices"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

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
		b.gone = append(b.gone, gone{key: k, dead: row.Dead, why: disarmed})
	}
}

// cancelWait takes back a wait that still stands. A need is put off, too.
func (b *builder) cancelWait(g journal.GUID) {
	if w, _ := b.waiting(g); w != nil {
		b.gone = append(b.gone, gone{key: RowKey{b.m.Job, g}, wait: w, why: disarmed})
	}
}

// abandon takes over the obligations that a close ends, own excepted, and takes
// back what stands for them (C15).
func (b *builder) abandon(own int64, cause *journal.Close) {
	b.p.Entry.Abandoned = int(b.p.Semaphore.Before - own)
	b.p.Semaphore.After = 0
	var all []gone
	var undo []*Row
	for g, row := range b.s.Rows {
		switch {
		case row == nil || g == b.m.Row || b.cancelled(g):
			continue
		case row.Job == b.m.Job && obligation(row.Kind):
			all = append(all, gone{key: RowKey{row.Job, g}, dead: row.Dead, why: withdrawn})
			if row.Undo {
				undo = append(undo, row)
			}
		case row.Job != b.m.Job && row.Sender == b.m.Job && !row.Undo:
			all = append(all, gone{key: RowKey{row.Job, g}, why: withdrawn})
		}
	}
	for g, w := range b.s.Waits {
		if w != nil && w.Job == b.m.Job && !b.cancelled(g) {
			all = append(all, gone{key: RowKey{w.Job, g}, wait: w, why: withdrawn})
		}
	}
	slices.SortFunc(all, func(x, y gone) int { return byBytes(x.key.GUID, y.key.GUID) })
	b.gone = append(b.gone, all...)
	slices.SortFunc(undo, func(x, y *Row) int { return byBytes(x.GUID, y.GUID) })
	for _, row := range undo {
		b.orderUndo(row, cause.Code, closeReason(cause))
	}
}

func closeReason(c *journal.Close) string {
	if c.Error == nil {
		return "the job was ended as completed"
	}
	return c.Error.Message
}

func byBytes(x, y journal.GUID) int { return bytes.Compare(x[:], y[:]) }

// obligation reports the kinds of rows that a close takes back; signals,
// interrupts, outcomes and the job's own start are nobody's obligation (C15).
func obligation(k journal.MessageKind) bool {
	switch k {
	case journal.MessageLeg1, journal.MessageRequest, journal.MessageAnswer, journal.MessageWakeUp, journal.MessageCycle:
		return true
	}
	return false
}
