package collation

import (
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// seal makes the table's writes and the entry of what the plan comes to (W4).
func (w *writer) seal() *Plan {
	p := w.p
	if p.Entry == nil {
		return p
	}
	w.sealClose()
	w.sealLedgers()
	w.sealSent()
	for i := range w.changed {
		c := &w.changed[i]
		c.row.Rev++
		p.Update = append(p.Update, c.row)
		if c.told {
			p.Entry.Updated = append(p.Entry.Updated, c.row.updated())
		}
	}
	for i := range p.Waits {
		x := &p.Waits[i]
		p.Entry.Waits = append(p.Entry.Waits, journal.Wait{GUID: x.GUID, Topic: x.Topic, Key: x.Key, Repeat: x.Repeat})
	}
	w.sealGone()
	if p.Entry.Kind == journal.KindDeadLetter {
		p.Entry.Trouble = &journal.Trouble{Reason: p.Dead[0].Reason, Message: p.Dead[0].Message}
	}
	return p
}

// updated is the row as an entry leaves it.
func (r *Row) updated() journal.Updated {
	return journal.Updated{GUID: r.GUID, Kind: r.Kind, Turn: r.Turn, Try: r.Try, NextAt: int64(r.NextAt), Held: r.Held}
}

// sealClose tells of the job's close, and of its completion tasks.
func (w *writer) sealClose() {
	p, e := w.p, w.p.Entry
	if p.Close != nil {
		p.NewState, p.Receipt.Closes = p.Close.State, true
		e.Close = p.Close
		w.mark(journal.MarkClosed)
	}
	if p.Tasks {
		w.mark(journal.MarkTasks)
	}
}

// sealLedgers tells of what moves by test-and-set (C3).
func (w *writer) sealLedgers() {
	p, e := w.p, w.p.Entry
	for i := range p.Ledgers {
		x := &p.Ledgers[i]
		open := 0
		if stored := w.s.Instances[x.Key]; stored != nil {
			open = stored.Open
		}
		if open != x.Open {
			e.Open = &journal.OpenMove{Before: open, After: x.Open}
		}
		if x.Before == x.After {
			continue // no digit: where its result stands has changed, or what it keeps beside
		}
		e.Ledgers = append(e.Ledgers, journal.LedgerMove{
			Activity: x.Key.Activity, DAD: string(x.Key.DAD),
			Before: journal.Ledger(x.Before), After: journal.Ledger(x.After),
		})
	}
	if x := p.Receipt; x != nil {
		e.Receipts = append(e.Receipts, journal.ReceiptMove{
			GUID: x.GUID, New: x.New, Before: journal.Ledger(x.Before), After: journal.Ledger(x.After), Verdict: x.Verdict,
		})
	}
	if slices.Contains(e.Marks, journal.MarkChildren) {
		move := p.Semaphore
		e.Semaphore = &move
	}
}

// sealSent inserts the rows of what is sent. The GUIDs of the elements of a list
// follow from that of their Leg1 (C8): they are counted and not listed.
func (w *writer) sealSent() {
	p, e := w.p, w.p.Entry
	for i := range w.sent {
		x := &w.sent[i]
		r := &x.row
		if x.folded {
			e.Folded = append(e.Folded, r.GUID)
		} else {
			p.Insert = append(p.Insert, *r)
		}
		if e.Elements != nil && r.Kind == journal.MessageRequest {
			continue
		}
		d := journal.Dispatched{
			GUID: r.GUID, Kind: r.Kind, Activity: r.Activity, DAD: string(r.DAD), Topic: r.Topic, At: int64(x.due),
		}
		if r.Job != p.Job {
			d.Job = r.Job
		}
		e.Dispatched = append(e.Dispatched, d)
	}
}

// sealGone deletes what stands no more: own rows, starts of children by
// test-and-set (C15), waits.
func (w *writer) sealGone() {
	p, e := w.p, w.p.Entry
	for i := range w.gone {
		x := &w.gone[i]
		g := x.key.GUID
		switch {
		case x.wait != nil:
			p.Unwait = append(p.Unwait, Unwait{g, x.wait.Count})
		case x.key.Job == p.Job:
			p.Delete = append(p.Delete, g)
		default:
			p.Recall = append(p.Recall, x.key)
		}
		if x.dead {
			p.Undead = append(p.Undead, g)
		}
		switch x.why {
		case ended:
			e.Ended = append(e.Ended, g)
		case disarmed:
			e.Disarmed = append(e.Disarmed, g)
		case withdrawn:
			e.Withdrawn = append(e.Withdrawn, g)
		}
	}
}
