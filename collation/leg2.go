package collation

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// leg2 processes a response or an answer (1.7): entry, step 1, step 2, and
// step 3 for the message that closes the job. A message that has a receipt
// goes on where its digits say.
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
	b.entry(journal.KindLeg2).Leg = 2
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

// accept is the entry of Leg2: +1 on the activity, a GUID ledger with that
// count as its ordinal, and the response as it is recorded for ever (C7).
func (b *builder) accept() (done bool, err error) {
	inst, ok := b.instance(b.key)
	if !ok || !inst.Ledger.Leg1Complete() {
		return false, errBroken("a licensed response to " + b.m.Activity + " before its Leg1 is complete")
	}
	if b.m.Response == nil {
		return false, errBroken("a message to " + b.m.Activity + " without a response in it or in its row")
	}
	if inst.Ledger.Finalized() || b.s.Job.State.Closed() {
		return true, b.stale()
	}
	if inst.Ledger, err = inst.Ledger.AcceptLeg2(); err != nil {
		return false, err
	}
	b.entry(journal.KindLeg2).Leg = 2
	b.response = b.classify()
	b.p.Entry.Response = b.response
	b.bind()
	b.put(b.key, inst)
	b.write(Accepted(inst.Ledger.Leg2Entries()), journal.VerdictHandled)
	b.mark(journal.MarkEntered)
	if b.cut() {
		b.turn()
	}
	return b.cut(), nil
}

// turn gives the request's row to the engine where the steps of its response
// commit apart (T1), from the first of them on: the row is the engine's to
// finish, and nobody else puts an answer of his own in the place of its body,
// which is the input of a further try. A row that is turned already is as it
// should be.
func (b *builder) turn() {
	if b.row == nil || b.row.Kind != journal.MessageRequest {
		return
	}
	row := *b.row
	row.Kind, row.Holder, row.LeaseUntil = journal.MessageAnswer, "", Never
	row.Held = "" // the answer that it was held for is here; its letter ends with it
	row.NextAt = b.s.Now + b.mode.Resend
	b.update(row)
}

// classify completes the response by what its row knows, and makes a failed
// try terminal when the policy has no further one (E8).
func (b *builder) classify() *journal.Response {
	r := *b.m.Response
	r.Turn, r.Try = b.row.Turn, b.row.Try
	if b.row.Turn > 0 {
		r.Request = b.row.GUID
	}
	if r.Kind == journal.ResponseFailedTry && b.row.Try >= b.act.Retry.Attempts {
		r.Kind = journal.ResponseTerminal
	}
	if r.Kind == journal.ResponseTerminal {
		r.RetryAfter = 0
	}
	return &r
}

// step1 marks the recorded response as the activity's result (1.7). Where it
// commits apart from step 2, the request's row is turned by then.
func (b *builder) step1() error {
	ledger, err := b.receipt.Ledger.SetStep1()
	if err != nil {
		return err
	}
	b.write(ledger, journal.VerdictHandled)
	b.mark(journal.MarkWork)
	if b.afterClose() && b.cutAfterWork() { // step 2 marks the entry that it shares
		b.mark(journal.MarkAfterClose)
	}
	if b.cutAfterWork() {
		b.turn()
	}
	if b.response.Kind == journal.ResponseTerminal && !b.afterClose() {
		inst, _ := b.instance(b.key)
		inst.ResultSeq, inst.Code = b.receipt.Seq, b.response.Code
		b.put(b.key, inst)
		if !b.cutAfterWork() { // step 2 follows in this plan, and cannot load what is not yet written
			b.own = responseResult(b.response)
		}
	}
	return nil
}

// bind names the head of the request's effect chain that a terminal response
// accepts (J8), in the entry that accepts it: from its commit on the row is
// gone, or turned, and takes no further effect.
func (b *builder) bind() {
	if b.response.Kind != journal.ResponseTerminal || b.row == nil || b.row.Effects.Seq == 0 {
		return
	}
	b.p.Entry.Bound = &journal.Bound{Chain: b.row.GUID, Head: b.row.Effects}
}

// afterClose reports that another message closed the job after this one was
// accepted: only its markers are left to set (C15).
func (b *builder) afterClose() bool {
	return b.s.Job.State.Closed() && !b.receipt.Ledger.Closed()
}

// step2 dispatches what follows, moves the semaphore, and ends the activity
// (1.7).
func (b *builder) step2() error {
	if done, err := b.enterStep2(); done || err != nil {
		return err
	}
	if b.response.Kind != journal.ResponseTerminal {
		return b.pending()
	}
	inst, _ := b.instance(b.key)
	ledger, err := inst.Ledger.Finalize()
	if err != nil {
		return err
	}
	inst.Ledger = ledger
	b.put(b.key, inst)
	return b.advance()
}

// enterStep2 sets the marker of step 2. Done: the job was closed before by
// another message, so there is nothing else to do (C15).
func (b *builder) enterStep2() (done bool, err error) {
	ledger, err := b.receipt.Ledger.SetStep2()
	if err != nil {
		return false, err
	}
	b.mark(journal.MarkChildren)
	b.write(ledger, journal.VerdictHandled)
	if !b.afterClose() {
		return false, nil
	}
	b.mark(journal.MarkAfterClose)
	b.end()
	return true, nil
}

// pending leaves the activity open: the request's row gets its next turn (C12,
// E7). A parked one waits for a person, with a dead letter (C16).
func (b *builder) pending() error {
	if b.row == nil {
		return errBroken("a pending response without the row of its request")
	}
	row := *b.row
	row.Kind, row.Held, row.Dead = journal.MessageRequest, "", false
	row.Turn++
	row.Holder, row.LeaseUntil, row.Runs = "", Never, 0
	b.undead()
	switch {
	case b.response.Kind == journal.ResponseFailedTry:
		row.NextAt = b.s.Now + retryDelay(b.act.Retry, row.Try, b.response.RetryAfter, b.m.GUID)
		row.Try++
	case b.response.Kind == journal.ResponseParked && !b.parks():
		row.NextAt = b.s.Now // the outcome is known by now: run again and find it
	case b.response.Kind == journal.ResponseParked:
		row.NextAt = Never
		row.Held, row.Dead = HeldParked, true
		reason := "the outcome of an effect is unknown"
		if b.response.Error != nil {
			reason = b.response.Error.Message
		}
		b.p.Dead = append(b.p.Dead, b.deadLetter(HeldParked, reason))
	default:
		row.NextAt = Never
	}
	b.update(row)
	b.p.Done = true
	return nil
}

// ClassParked is the class of a parked response whose reason is an effect of
// unknown outcome.
const ClassParked = "parked"

// parks reports whether the effect that the response is parked for is still
// unfinished. Its late completion may have been recorded while the response was
// on its way, and then nothing else would ever unpark the row (E4).
func (b *builder) parks() bool {
	if b.row.Effects.Seq == 0 || b.response.Error == nil || b.response.Error.Class != ClassParked {
		return true
	}
	unfinished, asked := b.s.Unfinished[b.row.GUID]
	if !asked {
		b.need.Effects = append(b.need.Effects, b.row.GUID)
	}
	return unfinished
}

// MaxRetryDelay bounds every delay before a further try: a week, µs.
const MaxRetryDelay = Micros(7 * 24 * 3600 * 1e6)

// retryDelay is the policy's backoff before the try after the given one (E8).
// The jitter is derived from the message, so that a plan stays a pure function
// of what it meets. A handler's own delay goes before the policy's.
func retryDelay(p flow.Retry, try int, asked int64, guid journal.GUID) Micros {
	if asked > 0 {
		return min(Micros(asked), MaxRetryDelay)
	}
	delay := float64(p.Backoff.Microseconds()) * math.Pow(p.Factor, float64(try-1))
	delay = math.Min(delay, float64(p.Max.Microseconds()))
	sum := sha256.Sum256(guid[:])
	unit := float64(binary.BigEndian.Uint32(sum[:4])) / math.MaxUint32 // 0…1
	delay *= 1 + p.Jitter*(2*unit-1)
	return min(max(Micros(delay), 0), MaxRetryDelay)
}

// start is the trigger's step 2 and 3; its step 1 is the inception (1.11).
func (b *builder) start() error {
	if b.receipt == nil {
		return errBroken("a start message without the receipt of its inception")
	}
	b.entry(journal.KindLeg2).Leg = 0
	if !b.receipt.Ledger.Step2() {
		if done, err := b.enterStep2(); done || err != nil {
			return err
		}
		if err := b.advance(); err != nil || b.p.Done || b.cut() {
			return err
		}
	}
	return b.step3()
}

// taken evaluates the transitions of an activity that has ended (E11): those
// without `on: error` after success, the others after an error.
func (b *builder) taken(failed bool) ([]*flow.Transition, error) {
	var out []*flow.Transition
	scope := b.scope(b.key)
	for _, t := range b.act.Out {
		if t.OnError != failed {
			continue
		}
		ok, err := t.Taken(scope)
		if !b.need.Empty() {
			return nil, nil
		}
		if err != nil {
			return nil, &whenError{err}
		}
		if ok {
			out = append(out, t)
		}
	}
	return out, nil
}

// whenError is a transition's expression that failed.
type whenError struct{ err error }

func (e *whenError) Error() string { return e.err.Error() }

// advance decides the transitions, dispatches the children and closes the job
// when nothing stays open.
func (b *builder) advance() error {
	own := b.result()
	if !b.need.Empty() {
		return nil
	}
	if !own.Ran {
		return errBroken("the entry that holds the result of " + b.m.Activity + " was not found")
	}
	failed := own.Code != CodeOK
	taken, err := b.taken(failed)
	if when := (*whenError)(nil); errors.As(err, &when) {
		taken, failed = b.failExpression(when)
	}
	if !b.need.Empty() {
		return nil
	}
	if failed && len(taken) == 0 {
		return b.fail()
	}
	if err := b.children(taken); err != nil || !b.need.Empty() {
		return err
	}
	b.p.Semaphore.After = b.p.Semaphore.Before + int64(len(taken)) - 1
	if b.p.Semaphore.After == 0 {
		return b.complete()
	}
	b.end()
	return nil
}

// failExpression makes a `when` that failed the activity's error 500 (E11) and
// decides the transitions for errors. One that fails there too takes none.
func (b *builder) failExpression(when *whenError) ([]*flow.Transition, bool) {
	e := b.p.Entry
	e.Trouble = &journal.Trouble{Reason: ReasonExpression, Message: short(when.err)}
	inst, _ := b.instance(b.key)
	inst.ResultSeq, inst.Code = e.Seq, CodeInternal
	b.put(b.key, inst)
	b.own = ResultOf(e)
	taken, err := b.taken(true)
	if err != nil {
		return nil, true
	}
	return taken, true
}
