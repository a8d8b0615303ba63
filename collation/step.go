package collation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Step decides one message against the state it meets and returns its plan, or
// what it needs to decide. It changes neither argument: State.Apply moves the
// state on.
//
// The order is receipt, licence, state (C5). Under mode.Stepwise the plan ends
// at the next mark and is not Done; the message is then stepped again, against
// the state with that plan applied.
func Step(s *State, m *Message, mode Mode) (*Plan, *Need) {
	b := &builder{s: s, m: m, mode: mode, p: &Plan{
		Job: m.Job, Message: m.GUID, Outcome: Handled,
		Semaphore: journal.SemaphoreMove{Before: s.Job.Semaphore, After: s.Job.Semaphore},
	}}
	err := b.decide()
	if !b.need.Empty() {
		return nil, &b.need.Need // also with another error: what was not read looks like what is not there
	}
	if err != nil {
		b.trouble(err)
	}
	b.seal()
	return b.p, nil
}

// builder gathers one plan. It reads through what the plan has changed so far.
type builder struct {
	s    *State
	m    *Message
	mode Mode
	p    *Plan
	need needError

	key InstanceKey // of the message's instance, at its base address
	// at is the address of the pass that the message makes: key, but for the
	// later passes of a pivot or a repeating hook (C6).
	at      InstanceKey
	act     *flow.Activity
	row     *Row // the licence; nil once it is gone
	receipt *Receipt
	// response is what this message brought, from its entry once it has one.
	response *journal.Response
	// own is the result of this message's activity, while its plan is made.
	own    *flow.Result
	folded int
}

// decide applies C5: receipt, then licence, then the state of job and
// activity.
func (b *builder) decide() error {
	if ended := b.ended(); ended != "" {
		return b.nothing(ended)
	}
	if b.m.Kind == journal.MessageInterrupt {
		return b.interrupted()
	}
	name := b.m.Activity
	if b.m.Kind == journal.MessageStart {
		name = b.s.Flow.Trigger().Name // whoever starts a child does not know it
		b.key.Activity, b.at.Activity = name, name
	}
	act, ok := b.s.Flow.Activity(name)
	if !ok {
		return errBroken("the flow has no activity " + name)
	}
	b.act = act
	switch b.m.Kind {
	case journal.MessageStart:
		return b.start()
	case journal.MessageLeg1:
		return b.leg1()
	case journal.MessageResponse, journal.MessageAnswer, journal.MessageWakeUp, journal.MessageOutcome, journal.MessageCycle:
		return b.leg2()
	default:
		return errBroken("no rule for messages of kind " + string(b.m.Kind))
	}
}

// ended says what became of a message that nothing is left to do for, "" for
// one that is still to be handled: its receipt, then its licence (C5).
func (b *builder) ended() Outcome {
	if b.s.Job.State == journal.JobQuarantined {
		return Quarantined
	}
	b.key = InstanceKey{b.m.Activity, b.m.DAD}
	b.at = b.key
	b.row, b.receipt = b.s.Rows[b.m.Row], b.s.Receipts[b.m.GUID]
	if forgotten(b.m.Kind) {
		b.receipt = nil
	}
	switch r := b.receipt; {
	case !guardSnapshot && b.s.Job.State.Closed():
		return Settled
	case r != nil && (r.Verdict == journal.VerdictStale || r.Ledger.Complete()):
		return Settled
	case r != nil:
		return ""
	case guardLicence && (b.row == nil || !b.licensed()):
		return Unlicensed
	case b.row != nil && b.row.Held != "" && b.m.Kind != journal.MessageResponse:
		return HeldBack
	}
	return ""
}

// forgotten is false, but for mutants that take a message with a receipt for a new
// one.
func forgotten(kind journal.MessageKind) bool {
	switch kind {
	case journal.MessageResponse:
		return !guardAccept
	case journal.MessageStart: // its receipt is of its job's inception
		return false
	}
	return !guardReceipt
}

// licensed reports whether the row is this message's licence (C5). A worker's
// response has its request's row in the turn it answers; at a row that was
// turned meanwhile (T1) only a terminal one counts, since the answer that stands
// there ends the request anyway and nothing would be left to try again.
func (b *builder) licensed() bool {
	switch b.m.Kind {
	case journal.MessageResponse:
		turned := b.row.Kind == journal.MessageAnswer && b.m.Response.Kind == journal.ResponseTerminal
		return (b.row.Kind == journal.MessageRequest || turned) && b.row.Turn == b.m.Turn
	case journal.MessageAnswer:
		return b.row.Kind == journal.MessageAnswer && b.row.Turn == b.m.Turn
	default:
		return b.row.Kind == b.m.Kind
	}
}

// nothing ends a message without writing.
func (b *builder) nothing(o Outcome) error {
	b.p.Outcome, b.p.Done = o, true
	return nil
}

// brokenError is state that no lawful history leads to: the job is quarantined
// (J1).
type brokenError struct{ what string }

func (e brokenError) Error() string { return e.what }

func errBroken(what string) error { return brokenError{what} }

// trouble turns an error of decide into its plan: at a ceiling the row is held
// with a dead letter (C4), anything else quarantines the job (J1). What was
// gathered before is dropped.
func (b *builder) trouble(err error) {
	b.row = b.s.Rows[b.m.Row]
	b.p = &Plan{
		Job: b.m.Job, Message: b.m.GUID, Done: true,
		Semaphore: journal.SemaphoreMove{Before: b.s.Job.Semaphore, After: b.s.Job.Semaphore},
	}
	if errors.Is(err, ErrCeiling) && b.row != nil {
		b.stuck(err)
		return
	}
	b.p.Outcome, b.p.NewState = Quarantined, journal.JobQuarantined
	e := b.entry(journal.KindQuarantine)
	e.Trouble = &journal.Trouble{Reason: "law", Message: short(err)}
}

// stuck holds the message's row for an operator (C4, E10).
func (b *builder) stuck(err error) {
	b.p.Outcome = Stuck
	e := b.entry(journal.KindDeadLetter)
	e.Trouble = &journal.Trouble{Reason: HeldStuck, Message: short(err)}
	row := *b.row
	row.Held, row.Dead = HeldStuck, true // beside its due time, which is kept (C16)
	b.update(row)
	b.p.Dead = append(b.p.Dead, b.deadLetter(HeldStuck, short(err)))
}

func (b *builder) deadLetter(reason, message string) DeadLetter {
	d := DeadLetter{
		Job: b.m.Job, Row: b.m.Row, Kind: b.m.Kind, Activity: b.key.Activity, DAD: b.key.DAD,
		Reason: reason, Message: message,
	}
	if i := b.s.Instances[b.key]; i != nil {
		d.Ledger = i.Ledger
	}
	return d
}

// entry begins the plan's one entry (2.2), or returns it.
func (b *builder) entry(kind journal.Kind) *journal.Entry {
	if b.p.Entry == nil {
		b.p.Entry = &journal.Entry{
			Space: b.s.Job.Space, Job: b.s.Job.ID, Generation: b.s.Job.Generation,
			Seq: b.s.Job.Head.Seq + 1, Kind: kind, GUID: b.m.GUID,
			Activity: b.key.Activity, DAD: string(b.key.DAD),
			Writer: b.mode.Writer, Build: b.mode.Build, Time: int64(b.s.Now), Trace: b.s.Job.Trace,
		}
	}
	return b.p.Entry
}

func (b *builder) mark(m journal.Mark) { b.p.Entry.Marks = append(b.p.Entry.Marks, m) }

// put writes the instance; several writes of one plan are one move.
func (b *builder) put(key InstanceKey, i Instance) {
	for n := range b.p.Ledgers {
		if w := &b.p.Ledgers[n]; w.Key == key {
			w.After, w.ResultSeq, w.Code, w.More = i.Ledger, i.ResultSeq, i.Code, i.More
			return
		}
	}
	w := LedgerWrite{Key: key, New: true, After: i.Ledger, ResultSeq: i.ResultSeq, Code: i.Code, More: i.More}
	if act, ok := b.s.Flow.Activity(key.Activity); ok {
		w.Join = act.Join != ""
	}
	if stored := b.s.Instances[key]; stored != nil {
		w.New, w.Before = false, stored.Ledger
	}
	b.p.Ledgers = append(b.p.Ledgers, w)
}

// write moves the receipt of the message.
func (b *builder) write(l GUIDLedger, v journal.Verdict) {
	if b.p.Receipt == nil {
		b.p.Receipt = &ReceiptWrite{GUID: b.m.GUID, New: b.receipt == nil, Seq: b.p.Entry.Seq}
		if b.receipt != nil {
			b.p.Receipt.Before, b.p.Receipt.Seq = b.receipt.Ledger, b.receipt.Seq
		}
	}
	b.p.Receipt.After, b.p.Receipt.Verdict = l, v
	b.receipt = &Receipt{Ledger: l, Verdict: v, Seq: b.p.Receipt.Seq, Response: b.response}
}

func (b *builder) insert(r Row) { b.insertAt(r, 0) }

// insertAt inserts a row; at is when it is due, where the entry has to say so.
func (b *builder) insertAt(r Row, at Micros) {
	b.p.Insert = append(b.p.Insert, r)
	d := journal.Dispatched{
		GUID: r.GUID, Kind: r.Kind, Activity: r.Activity, DAD: string(r.DAD), Topic: r.Topic, At: int64(at),
	}
	if r.Job != b.m.Job {
		d.Job = r.Job
	}
	b.p.Entry.Dispatched = append(b.p.Entry.Dispatched, d)
}

func (b *builder) update(r Row) {
	b.p.Update = append(b.p.Update, r)
	b.p.Entry.Updated = append(b.p.Entry.Updated, updatedOf(&r))
	b.row = &b.p.Update[len(b.p.Update)-1]
}

func updatedOf(r *Row) journal.Updated {
	return journal.Updated{GUID: r.GUID, Kind: r.Kind, Turn: r.Turn, Try: r.Try, NextAt: int64(r.NextAt), Held: r.Held}
}

// end ends the message's licence with its last marker (1.4).
func (b *builder) end() {
	b.p.Done = true
	if b.row == nil {
		return
	}
	b.p.Delete = append(b.p.Delete, b.row.GUID)
	b.p.Entry.Ended = append(b.p.Entry.Ended, b.row.GUID)
	b.undead()
}

// undead ends the open dead letter of the message's row (E10).
func (b *builder) undead() {
	if b.row.Dead {
		b.p.Undead = append(b.p.Undead, b.row.GUID)
	}
}

// cut reports whether the plan ends at the mark just set (C11).
func (b *builder) cut() bool { return b.mode.Stepwise }

// cutAfterWork is cut after step 1. An output that is stored beside the entry
// (E6) is read back through it, so its step 2 is a transaction of its own.
func (b *builder) cutAfterWork() bool { return b.mode.Stepwise || !b.response.Ref.IsZero() }

// stale refuses the message for good: a receipt of value 0, an entry, the end
// of the licence, in one plan (1.7).
func (b *builder) stale() error {
	b.p.Outcome = Stale
	b.entry(journal.KindStale)
	b.write(0, journal.VerdictStale)
	b.end()
	return nil
}

// seal copies the moves into the entry, so that the entry and the rows cannot
// differ.
func (b *builder) seal() {
	e := b.p.Entry
	if e == nil {
		return
	}
	for _, w := range b.p.Ledgers {
		if w.Before == w.After {
			continue // no digit: where its result stands has changed, or what it keeps beside
		}
		e.Ledgers = append(e.Ledgers, journal.LedgerMove{
			Activity: w.Key.Activity, DAD: string(w.Key.DAD),
			Before: journal.Ledger(w.Before), After: journal.Ledger(w.After),
		})
	}
	if w := b.p.Receipt; w != nil {
		e.Receipts = append(e.Receipts, journal.ReceiptMove{
			GUID: w.GUID, New: w.New, Before: journal.Ledger(w.Before), After: journal.Ledger(w.After), Verdict: w.Verdict,
		})
	}
	if slices.Contains(e.Marks, journal.MarkChildren) {
		move := b.p.Semaphore
		e.Semaphore = &move
	}
}

// Hold gives the plan that holds a message's row for an operator, with a dead
// letter: for a message that the store refuses for good (C10, E10). Without a
// row there is nothing to hold, and the job is quarantined (J1). A message that
// has ended or is held already (C5) changes nothing, whatever is wrong with it.
func Hold(s *State, m *Message, mode Mode, cause error) *Plan {
	b := &builder{s: s, m: m, mode: mode, p: &Plan{Job: m.Job, Message: m.GUID}}
	ended := b.ended()
	if ended == "" && b.receipt == nil && b.row.Held != "" {
		ended = HeldBack // a response to a held request, which needs no second letter
	}
	if ended == "" && b.row == nil && s.Job.State.Closed() {
		ended = Unlicensed // accepted before a close that took its row back: only markers are left of it (C15)
	}
	if ended != "" {
		_ = b.nothing(ended)
		b.p.Semaphore = journal.SemaphoreMove{Before: s.Job.Semaphore, After: s.Job.Semaphore}
		return b.p
	}
	return troubled(s, m, mode, fmt.Errorf("%w: %w", ErrCeiling, cause))
}

// Quarantine gives the plan that takes the job out of service (J1).
func Quarantine(s *State, m *Message, mode Mode, cause error) *Plan {
	return troubled(s, m, mode, cause)
}

func troubled(s *State, m *Message, mode Mode, cause error) *Plan {
	b := &builder{s: s, m: m, mode: mode}
	b.key = InstanceKey{m.Activity, m.DAD}
	if row := s.Rows[m.Row]; row != nil && m.Kind == journal.MessageStart {
		b.key = InstanceKey{row.Activity, row.DAD} // whoever starts a child does not know its trigger
	}
	b.at = b.key
	b.trouble(cause)
	b.seal()
	return b.p
}
