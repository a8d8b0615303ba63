package collation

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// leg2 handles what answers an activity (1.7): a response, an answer, a wake-up, a child's
// outcome, a cycle. It goes through entry, step 1, step 2 and, in the message that closes the
// job, step 3. A message with a receipt goes on where its digits say.
func (b *builder) leg2() error {
	if b.receipt == nil {
		if done, err := b.accept(); done || err != nil {
			return err
		}
	}
	b.response = b.receipt.Response
	if b.response == nil {
		return errBroken("the entry that accepted the message records no response")
	}
	b.entry(journal.KindLeg2)
	b.at = b.resolved()
	if !b.receipt.Ledger.Step1() {
		if err := b.step1(); err != nil || b.cutAfterWork() {
			return err
		}
	}
	if !b.receipt.Ledger.Step2() {
		if err := b.step2(); err != nil || b.p.Done || b.cut() {
			return err
		}
	}
	return b.step3()
}

// resolved is the address of the message's pass. The index is the ordinal of its own GUID
// ledger minus 1 (C6).
func (b *builder) resolved() InstanceKey {
	index := b.receipt.Ledger.Ordinal() - 1
	if b.act.Passes() && index > 0 {
		return InstanceKey{b.key.Activity, b.key.DAD.WithIndex(index)}
	}
	return b.key
}

// accept is the entry of Leg2. It adds 1 to the activity's ledger, makes a GUID ledger with
// that count as ordinal, and records the response for good (C7).
func (b *builder) accept() (done bool, err error) {
	inst, err := b.instance(b.key)
	if err != nil {
		return false, err
	}
	if !inst.Ledger.Leg1Complete() {
		return false, errBroken("a response that has a row to " + b.m.Activity + " before its Leg1 is complete")
	}
	if b.m.Response == nil {
		return false, errBroken("a message to " + b.m.Activity + " without a response in it or in its row")
	}
	verdict := Stale
	if !inst.Ledger.Finalized() && !b.s.Job.State.Closed() {
		if verdict, err = b.arbitrate(&inst); err != nil {
			return false, err
		}
	}
	switch {
	case verdict == Stale:
		b.stale()
		return true, nil
	case verdict != "":
		b.nothing(verdict)
		return true, nil
	}
	if inst.Ledger, err = inst.Ledger.AcceptLeg2(); err != nil {
		return false, err
	}
	b.entry(journal.KindLeg2)
	b.response = b.classify(&inst)
	b.p.Entry.Response = b.response
	b.bind()
	if b.wakes() {
		if err := b.take(); err != nil {
			return false, err
		}
	}
	if err := b.cancelRivals(&inst); err != nil {
		return false, err
	}
	b.put(b.key, inst)
	b.write(Accepted(inst.Ledger.Leg2Entries()), journal.VerdictHandled)
	b.mark(journal.MarkEntered)
	if b.cut() {
		b.turn()
	}
	return b.cut(), nil
}

// turn gives the request's row to the engine when the steps of the response commit apart (T1).
// From the first of them on only the engine finishes the row. Nobody may replace its body by
// another answer: it is the input of a further attempt. A row that is turned already stays.
func (b *builder) turn() {
	ends := b.response.Kind == journal.ResponseTerminal
	if b.row == nil || b.row.Kind != journal.MessageRequest && !(ends && (b.row.Undo || len(b.row.Pauses) > 0)) {
		return
	}
	row := *b.row
	row.Kind = journal.MessageAnswer
	row.letGo()
	row.Held = "" // the awaited answer has come; the dead letter ends with the row
	row.NextAt = b.s.Now + b.mode.Resend
	if ends { // the entry cancelled the pauses and ordered the compensations
		row.Pauses, row.Undo = nil, false
	}
	b.change(row, true)
}

// classify completes the response from its row or instance. It makes a failed attempt terminal
// if the policy allows no further one (E8).
func (b *builder) classify(inst *Instance) *journal.Response {
	r := *b.m.Response
	switch b.m.Kind {
	case journal.MessageOutcome:
		if b.wakes() {
			r.Kind = journal.ResponseWake // whatever the child's outcome is, the function judges it
			break
		}
		r.Turn, r.Attempt = inst.Turn, inst.Attempt
	case journal.MessageResponse, journal.MessageAnswer:
		r.Turn, r.Attempt, r.Element = b.row.Turn, b.row.Attempt, b.row.Element
		if b.row.Turn > 0 {
			r.Request = b.row.GUID
		}
	}
	if r.Kind == journal.ResponseFailedAttempt && r.Attempt >= b.act.Retry.Attempts {
		r.Kind = journal.ResponseTerminal
	}
	if r.Kind == journal.ResponseTerminal {
		r.RetryAfter = 0
	}
	return &r
}

// step1 marks the recorded response as the activity's result (1.7). If it commits apart from
// step 2, it turns the request's row.
func (b *builder) step1() error {
	if err := b.set(GUIDLedger.SetStep1); err != nil {
		return err
	}
	b.mark(journal.MarkWork)
	if b.afterClose() && b.cutAfterWork() { // otherwise step 2 sets the mark in the same entry
		b.mark(journal.MarkAfterClose)
	}
	if b.cutAfterWork() {
		b.turn()
	}
	if b.response.Kind == journal.ResponseWake {
		b.recordResolvedWait()
		return nil
	}
	if b.afterClose() || b.response.Kind != journal.ResponseTerminal && b.response.Kind != journal.ResponsePass {
		return nil
	}
	inst, err := b.instance(b.key)
	if err != nil {
		return err
	}
	if b.act.HasEach && inst.Count > 0 {
		key := elementKey(b.key, b.response.Element)
		b.put(key, Instance{ResultSeq: b.receipt.Seq, Code: b.response.Code})
		return nil
	}
	if err := b.record(b.receipt.Seq, b.response.Code); err != nil {
		return err
	}
	if !b.cutAfterWork() { // step 2 follows in this plan and cannot load an uncommitted result
		b.own = responseResult(b.response)
	}
	return nil
}

// record makes the address of the message's pass point to the entry that holds its result (J7).
func (b *builder) record(seq int64, code int) error {
	inst := Instance{}
	if fresh := b.p.Receipt != nil && b.p.Receipt.New; b.at == b.key || !fresh { // the pass is new
		var err error
		if inst, err = b.instance(b.at); err != nil {
			return err
		}
	}
	inst.ResultSeq, inst.Code = seq, code
	b.put(b.at, inst)
	return nil
}

// bind names, in the entry that accepts a terminal response, the head of the request's effect
// chain (J8). From that commit on the row is gone or turned, and takes no further effect.
func (b *builder) bind() {
	if b.response.Kind != journal.ResponseTerminal || b.row == nil || b.row.Effects.Seq == 0 {
		return
	}
	b.p.Entry.Bound = &journal.Bound{Chain: b.row.GUID, Head: b.row.Effects}
}

// afterClose reports whether another message closed the job after this one was accepted. Then
// only the markers are left to set (C15).
func (b *builder) afterClose() bool {
	return b.s.Job.State.Closed() && !b.receipt.Ledger.Closed()
}

// step2 dispatches what follows, moves the semaphore, and ends the activity
// (1.7).
func (b *builder) step2() error {
	if done, err := b.enterStep2(); done || err != nil {
		return err
	}
	switch {
	case b.response.Kind == journal.ResponsePass:
		return b.advance(0)
	case b.response.Kind == journal.ResponseWake:
		return b.wake()
	case b.response.Kind != journal.ResponseTerminal:
		return b.pending()
	}
	if by, over := b.tooMany(); over {
		return b.overrun(by)
	}
	if b.act.HasEach {
		if ended, err := b.elementEnds(); !ended || err != nil {
			return err
		}
	}
	if err := b.finalize(); err != nil {
		return err
	}
	return b.advance(-1)
}

// enterStep2 sets the marker of step 2. done: another message has closed the job before, so
// nothing else is left (C15).
func (b *builder) enterStep2() (done bool, err error) {
	if err := b.set(GUIDLedger.SetStep2); err != nil {
		return false, err
	}
	b.mark(journal.MarkChildren)
	if !b.afterClose() {
		return false, nil
	}
	b.mark(journal.MarkAfterClose)
	b.end()
	return true, nil
}

// start is the trigger's step 2 and 3; its step 1 is the inception (1.11).
func (b *builder) start() error {
	if b.receipt == nil {
		return errBroken("a start message without the receipt of its inception")
	}
	b.entry(journal.KindLeg2)
	if !b.receipt.Ledger.Step2() {
		if done, err := b.enterStep2(); done || err != nil {
			return err
		}
		if err := b.advance(-1); err != nil || b.p.Done || b.cut() {
			return err
		}
	}
	return b.step3()
}

// taken evaluates the transitions of an ended activity (E11): those without `on: error` after a
// success, the others after an error.
func (b *builder) taken(failed bool) (map[*flow.Transition]bool, error) {
	out := make(map[*flow.Transition]bool, len(b.act.Out))
	var names []string
	for _, t := range b.act.Out {
		if t.OnError == failed {
			names = append(names, t.Needs()...)
		}
	}
	scope, err := b.scope(b.act, b.at.DAD, names)
	if err != nil {
		return nil, err
	}
	for _, t := range b.act.Out {
		if t.OnError != failed {
			continue
		}
		ok, err := t.Taken(scope)
		if err != nil {
			return nil, &whenError{err}
		}
		if ok {
			out[t] = true
		}
	}
	return out, nil
}

// finalize sets +200T, except on a pivot, which is entered again (1.7).
func (b *builder) finalize() error {
	if b.act.Pivot {
		return nil
	}
	return b.move(b.key, ActivityLedger.Finalize)
}
