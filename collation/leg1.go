package collation

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// leg1 sends an activity's request (1.6). Entry and work are one plan, except
// stepwise and for a message that came too often already: that one is entered
// alone, so that one that kills its process is counted.
func (b *builder) leg1() error {
	if b.s.Job.State.Closed() {
		return b.stale()
	}
	inst, _ := b.instance(b.key)
	b.entry(journal.KindLeg1).Leg = 1
	if !b.m.Entered {
		if inst.Ledger.Leg1Entries() >= StuckLeg1+b.row.Runs { // an entry more for each retry by an operator (C4)
			return fmt.Errorf("%w: %s entered its Leg1 %d times without completing it; an operator must retry or end it",
				ErrCeiling, b.m.Activity, inst.Ledger.Leg1Entries())
		}
		ledger, err := inst.Ledger.EnterLeg1()
		if err != nil {
			return err
		}
		inst.Ledger = ledger
		b.put(b.key, inst)
		b.mark(journal.MarkEntered)
		if b.cut() || b.m.Alone {
			return nil
		}
	}
	if err := b.request(b.key, b.act, b.m.GUID); err != nil {
		return err
	}
	b.mark(journal.MarkWork)
	b.end()
	return nil
}

// request is Leg1's work for a worker: mapped input, the request's row, +100B.
// An input that fails is an error that Leg1 addresses to its own activity.
func (b *builder) request(key InstanceKey, act *flow.Activity, leg1 journal.GUID) error {
	inst, _ := b.instance(key)
	ledger, err := inst.Ledger.CompleteLeg1()
	if err != nil {
		return err
	}
	inst.Ledger = ledger
	input, err := act.Input(b.scope(key))
	if !b.need.Empty() {
		return nil
	}
	b.put(key, inst)
	row := Row{
		Job: b.m.Job, Activity: key.Activity, DAD: key.DAD, Origin: b.p.Entry.Seq, NextAt: b.s.Now,
	}
	if err != nil {
		row.Kind, row.GUID = journal.MessageAnswer, ResponseGUID(leg1, 0)
		row.Body = expressionAnswer(err)
		row.published(b.s.Now, b.mode.Resend)
		b.insert(row)
		return nil
	}
	row.Kind, row.GUID, row.Topic = journal.MessageRequest, RequestGUID(leg1, 0), act.Topic
	row.Body, row.Turn, row.Try = input, 1, 1
	if act.Within > 0 {
		row.WithinAt = b.s.Now + Micros(act.Within.Microseconds())
	}
	row.published(b.s.Now, b.mode.Resend)
	b.insert(row)
	return nil
}

// expressionAnswer is the wire form of the error response 500 that a failed
// expression gives (E11).
func expressionAnswer(err error) []byte {
	b := []byte(`{"kind":"terminal","code":` + strconv.Itoa(CodeInternal) + `,"error":{"class":"` + ReasonExpression + `","message":`)
	b = canonical.AppendString(b, short(err))
	return append(b, "}}"...)
}

// maxMessage bounds the text of an error that the engine itself records.
const maxMessage = 4 << 10

func short(err error) string {
	s := err.Error()
	if len(s) > maxMessage {
		s = s[:maxMessage]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

// children dispatches the successors of a decided activity and returns their
// number N (1.8). Under fold, their Leg1 is part of this plan (C11).
func (b *builder) children(taken []*flow.Transition) error {
	for _, t := range taken {
		dad := b.key.DAD.Child()
		guid := Leg1GUID(b.m.GUID, t.To.Name, dad)
		row := Row{
			GUID: guid, Job: b.m.Job, Kind: journal.MessageLeg1, Activity: t.To.Name, DAD: dad,
			Origin: b.p.Entry.Seq,
		}
		if !b.mode.Fold || b.mode.Stepwise || b.folded >= MaxFold {
			row.published(b.s.Now, b.mode.Resend)
			b.insert(row)
			continue
		}
		if err := b.fold(row, t.To); err != nil {
			return err
		}
	}
	return nil
}

// fold takes the Leg1 of a child into this plan: its row is never written, and
// the entry names it as folded.
func (b *builder) fold(row Row, act *flow.Activity) error {
	b.folded++
	e := b.p.Entry
	e.Dispatched = append(e.Dispatched, journal.Dispatched{
		GUID: row.GUID, Kind: row.Kind, Activity: row.Activity, DAD: string(row.DAD),
	})
	e.Folded = append(e.Folded, row.GUID)
	key := InstanceKey{row.Activity, row.DAD}
	ledger, err := ActivityLedger(0).EnterLeg1()
	if err != nil {
		return err
	}
	b.put(key, Instance{Ledger: ledger})
	err = b.request(key, act, row.GUID)
	if broken := (brokenError{}); errors.As(err, &broken) {
		return fmt.Errorf("fold of %s: %w", row.Activity, err)
	}
	return err
}
