package collation

import (
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// writer writes one plan. Its methods note each fact once. seal derives both the writes of the
// tables and the entry from the notes, so that the two cannot differ (W4).
type writer struct {
	s    *State
	m    *Message
	mode Mode
	p    *Plan

	key     InstanceKey // of the message's instance, at its base address
	row     *Row        // the dispatch row; nil once it is gone
	receipt *Receipt
	// response is what this message brought; once it has an entry, what that recorded.
	response *journal.Response

	sent    []sent
	changed []changed
	gone    []gone
}

// sent is a message that the plan sends.
type sent struct {
	row    Row
	due    Micros // when a timer is due, as the entry says it
	folded bool   // handled by this plan; its row is never written (C11)
}

// changed is a row of the job that stays, with its new value.
type changed struct {
	row  Row
	told bool // by the entry; false if only a pause's progress changes
}

// gone is a row or a wait that the plan ends.
type gone struct {
	key  RowKey
	wait *Wait // nil: a row
	dead bool  // an open dead letter stands for the row (E10)
	why  why
}

// why is the reason why something is gone; the entry has a list for each.
type why int

const (
	ended            why = iota // its message is handled
	cancelledByEnd              // the end of its activity cancelled it
	cancelledByClose            // a close cancelled it
)

func newWriter(s *State, m *Message, mode Mode) writer {
	w := writer{s: s, m: m, mode: mode}
	w.again()
	return w
}

// again drops what was written so far.
func (w *writer) again() {
	w.p = &Plan{
		Job: w.m.Job, Message: w.m.GUID, Outcome: Handled,
		Semaphore: journal.SemaphoreMove{Before: w.s.Job.Semaphore, After: w.s.Job.Semaphore},
	}
	w.sent, w.changed, w.gone = nil, nil, nil
}

// entry returns the plan's one entry (2.2), and begins it if there is none.
func (w *writer) entry(kind journal.Kind) *journal.Entry {
	if w.p.Entry == nil {
		w.p.Entry = &journal.Entry{
			Space: w.s.Job.Space, Job: w.s.Job.ID, Generation: w.s.Job.Generation,
			Seq: w.s.Job.Head.Seq + 1, Kind: kind, GUID: w.m.GUID,
			Activity: w.key.Activity, DAD: string(w.key.DAD),
			Time: int64(w.s.Now), Trace: w.s.Job.Trace,
		}
		if by := (Author{w.mode.Writer, w.mode.Build}); by != w.s.Author {
			w.p.Entry.Writer, w.p.Entry.Build = by.Writer, by.Build
		}
	}
	return w.p.Entry
}

func (w *writer) mark(m journal.Mark) { w.p.Entry.Marks = append(w.p.Entry.Marks, m) }

// put writes the instance. Several writes in one plan are one change.
func (w *writer) put(key InstanceKey, i Instance) {
	for n := range w.p.Ledgers {
		if x := &w.p.Ledgers[n]; x.Key == key {
			x.After, x.ResultSeq, x.Code, x.More = i.Ledger, i.ResultSeq, i.Code, i.More
			return
		}
	}
	x := LedgerWrite{Key: key, New: true, After: i.Ledger, ResultSeq: i.ResultSeq, Code: i.Code, More: i.More}
	if act, ok := w.s.Flow.Activity(key.Activity); ok {
		x.Join = act.Join != ""
	}
	if stored := w.s.Instances[key]; stored != nil {
		x.New, x.Before = false, stored.Ledger
	}
	w.p.Ledgers = append(w.p.Ledgers, x)
}

// write changes the receipt of the message.
func (w *writer) write(l GUIDLedger, v journal.Verdict) {
	if w.p.Receipt == nil {
		w.p.Receipt = &ReceiptWrite{GUID: w.m.GUID, New: w.receipt == nil, Seq: w.p.Entry.Seq}
		if w.receipt != nil {
			w.p.Receipt.Before, w.p.Receipt.Seq = w.receipt.Ledger, w.receipt.Seq
		}
	}
	w.p.Receipt.After, w.p.Receipt.Verdict = l, v
	w.receipt = &Receipt{Ledger: l, Verdict: v, Seq: w.p.Receipt.Seq, Response: w.response}
}

// set sets a marker of the message's receipt.
func (w *writer) set(marker func(GUIDLedger) (GUIDLedger, error)) error {
	l, err := marker(w.receipt.Ledger)
	if err == nil {
		w.write(l, journal.VerdictHandled)
	}
	return err
}

// insertRow inserts a row that is due at once, or held.
func (w *writer) insertRow(r Row) { w.sent = append(w.sent, sent{row: r}) }

// insertRowAt inserts a row; the entry says when it is due.
func (w *writer) insertRowAt(r Row, due Micros) { w.sent = append(w.sent, sent{row: r, due: due}) }

// timer inserts a row of the instance that is due later: the row is the timer (T1).
func (w *writer) timer(row Row, key InstanceKey) {
	row.Job, row.Activity, row.DAD, row.Origin = w.m.Job, key.Activity, key.DAD, w.p.Entry.Seq
	due := row.NextAt
	if due <= w.s.Now {
		row.published(w.s.Now, &w.mode)
	}
	w.insertRowAt(row, due)
}

// change gives a row that stays its new value. Several changes in one plan are one.
func (w *writer) change(row Row, told bool) {
	for i := range w.changed {
		if c := &w.changed[i]; c.row.GUID == row.GUID {
			c.row, c.told = row, c.told || told
			return
		}
	}
	w.changed = append(w.changed, changed{row, told})
}

// hold marks a row as held for a person, with a dead letter that says why (C16, E10). The
// caller writes the row.
func (w *writer) hold(row *Row, held, reason, message string) {
	w.undelivered(row)
	row.Held = held
	w.letter(row, reason, message)
}

// letter writes a dead letter about the row of the message. The caller writes the row.
func (w *writer) letter(row *Row, reason, message string) {
	row.Dead = true
	d := DeadLetter{
		Job: w.m.Job, Row: w.m.Row, Kind: w.m.Kind, Activity: w.key.Activity, DAD: w.key.DAD,
		Reason: reason, Message: message,
	}
	if i := w.s.Instances[w.key]; i != nil {
		d.Ledger = i.Ledger
	}
	w.p.Dead = append(w.p.Dead, d)
}

// resolve ends the open dead letter of the message's row; the row stays (E10).
func (w *writer) resolve() {
	if w.row.Dead {
		w.p.Resolve = append(w.p.Resolve, w.row.GUID)
	}
}

// kept is what the space keeps of the key of a job or a signal that a flow or a function names
// (S15).
func (w *writer) kept(key string) string {
	if !w.mode.Private || key == "" {
		return key
	}
	return journal.PrivateKey(w.s.Job.Space, key)
}

// wait registers a wait for a signal.
func (w *writer) wait(x Wait) {
	w.p.Waits = append(w.p.Waits, x)
	w.p.Sending = Sending{Resend: w.mode.Resend, Session: w.mode.Session}
}

// cancelled reports whether the plan ends the row or the wait.
func (w *writer) cancelled(g journal.GUID) bool {
	return slices.ContainsFunc(w.gone, func(x gone) bool { return x.key.GUID == g })
}

// end ends the message's dispatch row together with its last marker (1.4).
func (w *writer) end() {
	w.p.Done = true
	if w.row != nil {
		w.gone = append(w.gone, gone{key: RowKey{w.m.Job, w.row.GUID}, dead: w.row.Dead, why: ended})
	}
}

// nothing ends a message without writing.
func (w *writer) nothing(o Outcome) { w.p.Outcome, w.p.Done = o, true }

// stale refuses the message for good: a receipt of value 0, an entry, the end
// of the dispatch row, in one plan (1.7).
func (w *writer) stale() {
	w.p.Outcome = Stale
	w.entry(journal.KindStale)
	w.write(0, journal.VerdictStale)
	w.undelivered(w.row)
	w.end()
}

// undelivered records the signal of a wake-up that the entry does not hand to its repeating
// hook. Every other wake-up's id derives from what the journal has already (S12).
func (w *writer) undelivered(row *Row) {
	if row == nil || row.Kind != journal.MessageWakeUp {
		return
	}
	r, err := journal.DecodeResponse(row.Body)
	if err != nil || r.By != journal.BySignal || r.Number == 0 {
		return
	}
	w.p.Entry.Undelivered = append(w.p.Entry.Undelivered, journal.Delivery{
		Activity: row.Activity, DAD: string(row.DAD), Signal: r.Signal, Who: r.Who, Number: r.Number,
		Ends: r.Kind == journal.ResponseTerminal,
	})
}
