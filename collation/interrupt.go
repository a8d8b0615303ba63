package collation

// An interrupt closes a job from inside or outside. It reads every row and wait of the job, or
// which job has a key. It decides which job ends and which of its children end with it. It
// writes the close, or an interrupt to another job.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// Classes of the errors of interrupts.
const (
	classInterrupted = "interrupted"
	classNotFound    = "not_found"
)

// interrupts is the Leg1 of an interrupt activity. It closes its own job (category C), or sends
// a message to another (category B).
func (b *builder) interrupts(t *task) error {
	x, err := b.act.Interrupt(t)
	if err != nil {
		return b.dispatched(b.answer(t, expressionAnswer(err)))
	}
	o := &InterruptOrder{
		Code: x.Code, Reason: x.Reason, Throw: b.act.Throw, Descend: b.act.Descend,
		From: fmt.Sprintf("%s of job %s", b.act.Name, b.s.Job.Key),
	}
	key := b.kept(x.Target)
	if key == "" || key == b.s.Job.Key {
		return b.interruptOwn(o)
	}
	target, err := read(b, b.s.Keys, key, &b.need.Keys)
	if err != nil {
		return err
	}
	if target == (journal.JobID{}) {
		return b.stepsWith(&journal.Result{Code: CodeNotFound, Error: &journal.Failure{
			Class: classNotFound, Message: fmt.Sprintf("there is no job with the key %q", key),
		}}, nil)
	}
	row, err := o.Row(InterruptGUID(b.m.GUID, target), target, b.s.Now)
	if err != nil {
		return errBroken(err.Error())
	}
	return b.stepsWith(&journal.Result{Code: CodeOK, Output: []byte(`{"id":"` + target.String() + `"}`)}, &row)
}

// interruptOwn closes the job by its own interrupt. The receipt of the Leg1 message has the
// close and step 3 (1.11).
func (b *builder) interruptOwn(o *InterruptOrder) error {
	if err := b.everything(); err != nil {
		return err
	}
	if err := b.completeLeg1(b.key, More{}); err != nil {
		return err
	}
	return b.halt(o, 1)
}

// interrupted handles an interrupt that is addressed to the job (C15). For a closed job nothing
// is written to the journal (W12), unless the journal mentions the interrupt already: it was
// held, and an operator has released it.
func (b *builder) interrupted() error {
	switch closed := b.s.Job.State.Closed(); {
	case b.receipt != nil:
		b.entry(journal.KindInterrupt)
		return b.step3()
	case closed && b.row.Runs == 0:
		b.nothing(Stale)
		b.p.Delete, b.p.Signals = []journal.GUID{b.row.GUID}, tooLate(b.m.GUID)
		return nil
	case closed:
		b.stale()
		return nil
	}
	if err := b.everything(); err != nil {
		return err
	}
	o := &InterruptOrder{}
	if err := json.Unmarshal(b.row.Body, o); err != nil {
		return errBroken("an interrupt that cannot be read: " + err.Error())
	}
	e := b.entry(journal.KindInterrupt)
	if o.Who != "" {
		e.Operator = &journal.Operator{Action: ActionInterrupt, Who: o.Who}
	}
	return b.halt(o, 0)
}

// halt closes the job by an interrupt. own is how many obligations end with its message; the
// others are abandoned.
func (b *builder) halt(o *InterruptOrder, own int64) error {
	ledger, err := GUIDLedger(0).SetStep1()
	if err == nil {
		ledger, err = ledger.SetStep2()
	}
	if err != nil {
		return err
	}
	c := &journal.Close{
		State: journal.JobInterrupted, Code: o.Code,
		Error: &journal.Failure{Class: classInterrupted, Message: o.Reason},
	}
	if !o.Throw {
		if c, err = b.completion(); err != nil {
			return err
		}
	}
	b.write(ledger, journal.VerdictHandled)
	b.mark(journal.MarkWork)
	b.mark(journal.MarkChildren)
	b.abandon(own, c)
	if o.Descend {
		if err := b.descend(o); err != nil {
			return err
		}
	}
	if err := b.close(c); err != nil || b.cut() {
		return err
	}
	return b.step3()
}

// descend interrupts the children that the job awaits and that have begun.
func (b *builder) descend(o *InterruptOrder) error {
	var children []journal.JobID
	for key, i := range b.s.Instances {
		act, known := b.s.Flow.Activity(key.Activity)
		if i == nil || i.Child == (journal.JobID{}) || i.Ledger.Finalized() || !known || !act.Awaited {
			continue
		}
		if b.s.Rows[OutcomeGUID(i.Child.Start(), i.Turn)] != nil {
			continue // it has ended, or it was refused
		}
		if row := b.s.Rows[i.Child.Start()]; row == nil || row.Sender != b.m.Job { // else its start is cancelled
			children = append(children, i.Child)
		}
	}
	children = append(children, b.functionsChildren()...)
	slices.SortFunc(children, func(x, y journal.JobID) int { return bytes.Compare(x[:], y[:]) })
	order := &InterruptOrder{
		Code: o.Code, Reason: o.Reason, Throw: true, Descend: true, From: "its parent, job " + b.s.Job.Key,
	}
	for _, child := range children {
		row, err := order.Row(InterruptGUID(b.m.GUID, child), child, b.s.Now)
		if err != nil {
			return errBroken(err.Error())
		}
		row.Origin = b.p.Entry.Seq
		row.published(b.s.Now, &b.mode)
		b.insertRow(row)
	}
	return nil
}
