package collation

import (
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// seal derives the writes of the tables and the entry from what the plan notes (W4).
func (w *writer) seal() *Plan {
	p := w.p
	if p.Entry == nil {
		return p
	}
	w.sealClose()
	w.sealLedgers()
	w.sealReceipt()
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

// updated is the row's state as an entry records it.
func (r *Row) updated() journal.Updated {
	return journal.Updated{
		GUID: r.GUID, Kind: r.Kind, Turn: r.Turn, Attempt: r.Attempt, NextAt: int64(r.NextAt), Held: r.Held,
	}
}

// sealClose records the job's close and its completion tasks.
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

// sealLedgers records the ledgers that change by test-and-set (C3).
func (w *writer) sealLedgers() {
	p, e := w.p, w.p.Entry
	for i := range p.Ledgers {
		x := &p.Ledgers[i]
		open := 0
		if stored := w.s.Instances[x.Key]; stored != nil {
			open = stored.Open
		}
		if open != x.Open && e.Elements == nil { // Elements has the number already
			left := x.Open
			e.Open = &left
		}
		switch {
		case x.Before == x.After: // no digit changes, only the result's place or More
		case x.Key == w.key:
			e.Ledger = journal.Ledger(x.After)
		case !w.folds(x.Key):
			e.Joins = append(e.Joins, x.move())
		}
	}
	if slices.Contains(e.Marks, journal.MarkChildren) {
		left := p.Semaphore.After
		e.Semaphore = &left
	}
}

// sealReceipt records the message's own ledger. A receipt goes with the row of its message: a
// redelivery finds neither, and is done (W12). Two receipts stay: that of the close, which the
// compound statement writes (C14), and that of an interrupt, which may be asked for again by
// its key.
func (w *writer) sealReceipt() {
	x := w.p.Receipt
	if x == nil {
		return
	}
	w.p.Entry.Receipt = journal.Ledger(x.After)
	ends := slices.ContainsFunc(w.gone, func(g gone) bool { return g.why == ended })
	switch {
	case !ends || x.After.Closed() || w.m.Kind == journal.MessageInterrupt:
	case x.New:
		w.p.Receipt = nil
	default:
		x.Gone = true
	}
}

// folds reports whether the Leg1 of the instance is part of the plan (C11).
func (w *writer) folds(key InstanceKey) bool {
	return slices.ContainsFunc(w.sent, func(x sent) bool {
		return x.folded && x.row.Activity == key.Activity && x.row.DAD == key.DAD
	})
}

// move is the write as an entry records it.
func (x *LedgerWrite) move() journal.LedgerMove {
	return journal.LedgerMove{
		Activity: x.Key.Activity, DAD: string(x.Key.DAD), After: journal.Ledger(x.After),
		Arrivals: x.After.Arrivals() - x.Before.Arrivals(),
	}
}

// inputOf is the input that a message gives to somebody else: a request, or a child's start.
func inputOf(r *Row) []byte {
	switch r.Kind {
	case journal.MessageRequest:
		return r.Body
	case journal.MessageStart:
		if o, err := r.Order(); err == nil {
			return o.Input
		}
	}
	return nil
}

// sealSent inserts the rows that are sent. The GUIDs of a list's elements follow from their
// Leg1's (C8), so they are counted and not listed. The entry has the sum of every input (W12).
func (w *writer) sealSent() {
	p, e := w.p, w.p.Entry
	for i := range w.sent {
		x := &w.sent[i]
		r := &x.row
		if !x.folded {
			p.Insert = append(p.Insert, *r)
		}
		input := journal.SumOf(inputOf(r))
		if e.Elements != nil && r.Turn > 0 { // a request, or an element's answer from an earlier generation
			e.Elements.Inputs = e.Elements.Inputs.Append(input)
			continue
		}
		d := journal.Dispatched{
			GUID: r.GUID, Kind: r.Kind, Activity: r.Activity, DAD: string(r.DAD), Topic: r.Topic, At: int64(x.due),
			Input: input,
		}
		for n := range p.Ledgers {
			if l := &p.Ledgers[n]; x.folded && l.Key == (InstanceKey{r.Activity, r.DAD}) {
				d.Folded, d.Arrivals = journal.Ledger(l.After), l.move().Arrivals
			}
		}
		if r.Job != p.Job {
			d.Job = r.Job
		}
		e.Dispatched = append(e.Dispatched, d)
	}
}

// sealGone deletes what is gone: the job's rows, starts of children by test-and-set (C15),
// waits.
func (w *writer) sealGone() {
	p, e := w.p, w.p.Entry
	for i := range w.gone {
		x := &w.gone[i]
		g := x.key.GUID
		switch {
		case x.wait != nil:
			p.CancelWaits = append(p.CancelWaits, CancelledWait{g, x.wait.Count})
		case x.key.Job == p.Job:
			p.Delete = append(p.Delete, g)
		default:
			p.CancelStarts = append(p.CancelStarts, x.key)
		}
		if x.dead {
			p.Resolve = append(p.Resolve, g)
		}
		switch x.why {
		case ended:
			e.Ended = g
		case cancelledByEnd:
			e.Cancelled = append(e.Cancelled, g)
		case cancelledByClose:
			e.CancelledByClose = append(e.CancelledByClose, g)
		}
	}
}
