package collation

// Activities without a response (category B) answer themselves: signals, and hooks that pass
// through. They read the results that their input mentions, decide on their output, and write
// it as the result of their own Leg1.

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// stepsFrom is the work of an activity without a response (category B). It takes the same three
// steps, on the GUID of the Leg1 (1.11). Step 1 is what the activity does.
func (b *builder) stepsFrom(t *task) error {
	result, row, err := b.perform(t)
	if err != nil {
		return b.dispatched(b.answer(t, expressionAnswer(err)))
	}
	return b.stepsWith(result, row)
}

// stepsWith is step 1 of category B with the given result, and the steps that follow.
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
		row.published(b.s.Now, &b.mode)
		b.insertRow(*row)
	}
	b.mark(journal.MarkWork)
	if b.cut() {
		return nil
	}
	return b.steps()
}

// perform does the work of an activity without a response: it returns its result, and the row
// that it sends, if any.
func (b *builder) perform(scope flow.Scope) (*journal.Result, *Row, error) {
	switch b.act.Type {
	case flow.TypeSignal:
		sent, err := b.act.Signal(scope)
		if err != nil {
			return nil, nil, err
		}
		s := &Signal{
			GUID: SentGUID(b.m.GUID), Topic: b.act.Topic, Key: b.kept(sent.Key), Code: sent.Code, Payload: sent.Payload,
			All: b.act.All, Sent: b.s.Now, Trace: b.s.Job.Trace,
		}
		row, err := s.Row(b.s.Job.Space)
		return &journal.Result{Code: CodeOK, Output: []byte(`{"id":"` + s.GUID.String() + `"}`)}, &row, err
	default:
		output, err := b.act.Input(scope)
		return &journal.Result{Code: CodeOK, Output: output}, nil, err
	}
}

// steps continues with step 2 and step 3 of a Leg1 that has a receipt.
func (b *builder) steps() error {
	b.entry(journal.KindLeg1)
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
