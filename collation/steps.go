package collation

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// stepsFrom is the work of an activity without a response (category B): the
// same three steps, on the Leg1's own GUID (1.11). Step 1 is what it does.
func (b *builder) stepsFrom() error {
	scope, err := b.inputs(b.act, b.key.DAD)
	if err != nil {
		return err
	}
	result, row, err := b.deed(scope)
	if err != nil {
		return b.dispatched(b.answer(b.key, b.m.GUID, expressionAnswer(err)))
	}
	return b.stepsWith(result, row)
}

// stepsWith is step 1 of category B with its result, and the steps that follow.
func (b *builder) stepsWith(result *journal.Result, row *Row) error {
	if err := b.completeLeg1(b.key, More{}); err != nil {
		return err
	}
	if b.act.Pivot {
		if err := b.move(b.key, ActivityLedger.PreSeed); err != nil {
			return err
		}
	}
	if _, err := b.settle(result); err != nil {
		return err
	}
	ledger, err := GUIDLedger(0).SetStep1()
	if err != nil {
		return err
	}
	b.write(ledger, journal.VerdictHandled)
	if row != nil {
		row.Origin = b.p.Entry.Seq
		row.published(b.s.Now, b.mode.Resend)
		b.send(*row)
	}
	b.mark(journal.MarkWork)
	if b.cut() {
		return nil
	}
	return b.steps()
}

// deed evaluates what an activity without a response does: its result, and the
// row that it sends, if any.
func (b *builder) deed(scope flow.Scope) (*journal.Result, *Row, error) {
	switch b.act.Type {
	case flow.TypeSignal:
		sent, err := b.act.Signal(scope)
		if err != nil {
			return nil, nil, err
		}
		s := &Signal{
			GUID: SentGUID(b.m.GUID), Topic: b.act.Topic, Key: sent.Key, Code: sent.Code, Payload: sent.Payload,
			All: b.act.All, Sent: b.s.Now, Trace: b.s.Job.Trace,
		}
		row, err := s.Row(b.s.Job.Space)
		return &journal.Result{Code: CodeOK, Output: []byte(`{"id":"` + s.GUID.String() + `"}`)}, &row, err
	default:
		output, err := b.act.Input(scope)
		return &journal.Result{Code: CodeOK, Output: output}, nil, err
	}
}

// steps goes on with step 2 and step 3 of a Leg1 that has a receipt.
func (b *builder) steps() error {
	b.entry(journal.KindLeg1).Leg = 1
	if !b.receipt.Ledger.Step2() {
		if done, err := b.enterStep2(); done || err != nil {
			return err
		}
		if err := b.finalize(); err != nil {
			return err
		}
		if err := b.advance(-1); err != nil || b.p.Done || b.cut() {
			return err
		}
	}
	return b.step3()
}

// finalize sets +200T, except on a pivot: it is entered again (1.7).
func (b *builder) finalize() error {
	if b.act.Pivot {
		return nil
	}
	return b.move(b.key, ActivityLedger.Finalize)
}

// cycle sends its pivot into the next pass (1.11): the cycle's obligation moves
// there, so the semaphore stays as it is.
func (b *builder) cycle() error {
	scope, err := b.inputs(b.act, b.key.DAD)
	if err != nil {
		return err
	}
	input, err := b.act.Input(scope)
	if err != nil {
		return b.dispatched(b.answer(b.key, b.m.GUID, expressionAnswer(err)))
	}
	if err := b.completeLeg1(b.key, More{}); err != nil {
		return err
	}
	pivot := b.act.To
	row := Row{
		GUID: CycleGUID(b.m.GUID), Job: b.m.Job, Kind: journal.MessageCycle, Activity: pivot.Name,
		DAD: b.key.DAD.Prefix(pivot.Depth + 1).Base(), Topic: b.act.Name, Origin: b.p.Entry.Seq,
		Body: journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: CodeOK, Output: input}),
	}
	row.published(b.s.Now, b.mode.Resend)
	b.send(row)
	return b.dispatched(nil)
}

// tooMany reports whether the pass that a cycle's message makes is past the
// cycle's `max`.
func (b *builder) tooMany() (*flow.Activity, bool) {
	if b.m.Kind != journal.MessageCycle || b.row == nil {
		return nil, false
	}
	by, ok := b.s.Flow.Activity(b.row.Topic)
	return by, ok && b.receipt.Ledger.Ordinal()-1 > by.Max
}
