package collation

import (
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// leg1 sends an activity's request, or does the work of one that has no response (1.6, 1.11).
// Entry and work are one plan, except under Stepwise and for a message that came too often.
// That one commits its entry alone, so that it is counted even if its work kills the process.
func (b *builder) leg1() error {
	if b.receipt != nil {
		return b.steps()
	}
	if b.s.Job.State.Closed() {
		b.stale()
		return nil
	}
	inst, err := b.instance(b.key)
	if err != nil {
		_, _ = b.task(b.key, b.act, b.m.GUID) // load what the work needs in the same trip
		return err
	}
	b.entry(journal.KindLeg1)
	if !b.m.Entered {
		if inst.Ledger.Leg1Entries() >= StuckLeg1+b.row.Runs { // one more for each retry (C4)
			return fmt.Errorf("%w: %s entered its Leg1 %d times without completing it; an operator must retry or end it",
				ErrCeiling, b.m.Activity, inst.Ledger.Leg1Entries())
		}
		if err := b.move(b.key, ActivityLedger.EnterLeg1); err != nil {
			return err
		}
		b.mark(journal.MarkEntered)
		if b.cut() || b.m.Alone {
			return nil
		}
	}
	return b.work()
}

// task is the work of one Leg1: the message's own, or that of a folded child (C11).
type task struct {
	flow.Scope // for the task's expressions
	key        InstanceKey
	act        *flow.Activity
	leg1       journal.GUID
}

func (b *builder) task(key InstanceKey, act *flow.Activity, leg1 journal.GUID) (*task, error) {
	scope, err := b.scope(act, key.DAD, act.InputNeeds())
	return &task{scope, key, act, leg1}, err
}

// work does the Leg1 work of the activity's category (1.11).
func (b *builder) work() error {
	t, err := b.task(b.key, b.act, b.m.GUID)
	switch {
	case err != nil:
		return err
	case b.act.Type == flow.TypeCycle:
		return b.dispatched(b.cycle(t))
	case b.act.Type != flow.TypeInterrupt && b.act.Type != flow.TypeSignal && !b.act.PassThrough():
		return b.dispatched(b.request(t))
	}
	switch p, err := b.past(t.key); {
	case err != nil:
		return err
	case p != nil:
		return b.stepsWith(p.result(), nil)
	case b.act.Type == flow.TypeInterrupt:
		return b.interrupts(t)
	}
	return b.stepsFrom(t)
}

// dispatched finishes a Leg1 whose work is to dispatch.
func (b *builder) dispatched(err error) error {
	if err != nil {
		return err
	}
	b.mark(journal.MarkWork)
	b.end()
	return nil
}

// request is the Leg1 work of category A: it sends what is asked, and sets +100B. If an
// expression fails, or an earlier generation has the result, Leg1 sends the error or the result
// to its own activity instead.
func (b *builder) request(t *task) error {
	p, err := b.past(t.key)
	switch {
	case err != nil:
		return err
	case p != nil:
		return b.answer(t, journal.EncodeResponse(p.response()))
	case t.act.HasEach:
		return b.elements(t)
	case t.act.Type == flow.TypeAwait:
		return b.await(t)
	case t.act.Type == flow.TypeHook:
		return b.hook(t)
	}
	input, err := t.act.Input(t)
	if err != nil {
		return b.answer(t, expressionAnswer(err))
	}
	if err := b.completeLeg1(t.key, More{}); err != nil {
		return err
	}
	b.insertRow(b.element(t, 0, input))
	return nil
}

// completeLeg1 sets +100B, and the data that the instance keeps beside its ledger.
func (b *builder) completeLeg1(key InstanceKey, more More) error {
	inst, err := b.instance(key)
	if err != nil {
		return err
	}
	inst.More = more
	b.put(key, inst)
	return b.move(key, ActivityLedger.CompleteLeg1)
}

// answer completes a Leg1 that asks nobody: it sends the answer to its own activity (1.4).
func (b *builder) answer(t *task, body []byte) error {
	if err := b.completeLeg1(t.key, More{}); err != nil {
		return err
	}
	row := Row{
		GUID: ResponseGUID(t.leg1, 0), Job: b.m.Job, Kind: journal.MessageAnswer, Activity: t.key.Activity,
		DAD:  t.key.DAD,
		Body: body, Origin: b.p.Entry.Seq,
	}
	row.published(b.s.Now, &b.mode)
	b.insertRow(row)
	return nil
}

// element makes the request row of one element; an activity without `each` has element 0.
func (b *builder) element(t *task, element int, input []byte) Row {
	row := Row{
		GUID: RequestGUID(t.leg1, element), Job: b.m.Job, Kind: journal.MessageRequest, Activity: t.key.Activity,
		DAD:   t.key.DAD,
		Topic: t.act.Topic, Request: Request{Element: element, Turn: 1, Attempt: 1}, Body: input, Origin: b.p.Entry.Seq,
	}
	if t.act.Within > 0 {
		row.WithinAt = b.s.Now + Micros(t.act.Within.Microseconds())
	}
	row.published(b.s.Now, &b.mode)
	return row
}

// dispatch sends the Leg1 of a successor. With Fold, the Leg1 becomes part of this plan if the
// activity is answered by somebody else (C11), as long as the evaluations of the plan have cost
// less than one step may: each Leg1 has a budget of its own.
func (b *builder) dispatch(guid journal.GUID, to *flow.Activity, dad DAD) error {
	row := Row{
		GUID: guid, Job: b.m.Job, Kind: journal.MessageLeg1, Activity: to.Name, DAD: dad, Origin: b.p.Entry.Seq,
	}
	if b.mode.Fold && !b.mode.Stepwise && b.folded < MaxFold && b.spent() < flow.MaxStepCost && foldable(to) {
		return b.fold(row, to)
	}
	row.published(b.s.Now, &b.mode)
	b.insertRow(row)
	return nil
}

// foldable reports whether a Leg1 may be part of its parent's plan. That holds for category A
// with work of bounded size; its results come from somebody else.
func foldable(a *flow.Activity) bool {
	switch a.Type {
	case flow.TypeWorker:
		return !a.HasEach
	case flow.TypeHook:
		return !a.PassThrough()
	}
	return a.Type == flow.TypeAwait
}

// fold takes the Leg1 of a child into this plan. Its row is never written; the entry names it
// as folded.
func (b *builder) fold(row Row, act *flow.Activity) error {
	b.folded++
	b.sent = append(b.sent, sent{row: row, folded: true})
	key := InstanceKey{row.Activity, row.DAD}
	if act.Join == "" {
		b.put(key, Instance{}) // a child of one parent is new, a join already exists
	}
	if err := b.move(key, ActivityLedger.EnterLeg1); err != nil {
		return err
	}
	t, err := b.task(key, act, row.GUID)
	if err == nil {
		err = b.request(t)
	}
	if broken := (brokenError{}); errors.As(err, &broken) {
		return fmt.Errorf("fold of %s: %w", row.Activity, err)
	}
	return err
}
