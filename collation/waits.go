package collation

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of `each`.
const (
	// MaxElementBytes bounds the inputs of all elements of one list together.
	MaxElementBytes = 32 << 20
	// MaxGathered bounds the gathered outputs of one list.
	MaxGathered = 1 << 20
)

// classTooLarge is the class of an error about a limit of size.
const classTooLarge = "too_large"

// elements writes one request for each element of the list, those beyond
// Parallel held (1.11). The empty list is answered at once.
func (b *builder) elements(key InstanceKey, act *flow.Activity, leg1 journal.GUID) error {
	scope, err := b.inputs(act, key.DAD)
	if err != nil {
		return err
	}
	items, err := act.Each(scope)
	inputs, size := make([][]byte, len(items)), 0
	for i := 0; i < len(items) && err == nil && size <= MaxElementBytes; i++ {
		inputs[i], err = act.ElementInput(scope, items[i], i)
		size += len(inputs[i])
	}
	switch {
	case err != nil:
		return b.answer(key, leg1, expressionAnswer(err))
	case size > MaxElementBytes:
		message := fmt.Sprintf("the inputs of the %d elements of %s are over the limit of %d bytes together", len(items), act.Name, MaxElementBytes)
		return b.answer(key, leg1, errorAnswer(CodeInternal, classTooLarge, message))
	case len(items) == 0:
		return b.answer(key, leg1, []byte(`{"kind":"terminal","code":200,"output":[]}`))
	}
	if err := b.completeLeg1(key, More{Leg1: leg1, Open: len(items), Count: len(items)}); err != nil {
		return err
	}
	for i, input := range inputs {
		row := b.element(key, act, leg1, i, input)
		if i >= act.Parallel {
			row.Held, row.Publication, row.PublishedAt, row.TurnSent, row.NextAt = HeldParallel, 0, Never, 0, b.s.Now
		}
		b.send(row)
	}
	b.p.Entry.Elements = &journal.Elements{Count: len(items), Parallel: min(act.Parallel, len(items))}
	return nil
}

// hook registers what a hook waits for: a signal, a time, or whichever comes
// first, and the bound of both.
func (b *builder) hook(key InstanceKey, act *flow.Activity, leg1 journal.GUID) error {
	scope, err := b.inputs(act, key.DAD)
	if err != nil {
		return err
	}
	var at Micros
	var name string
	if act.HasSleep {
		sleep, failed := act.Sleep(scope)
		at, err = b.s.Now+Micros(sleep.Microseconds()), failed
	}
	if act.Topic != "" && err == nil {
		name, err = act.Key(scope)
	}
	if err != nil {
		return b.answer(key, leg1, expressionAnswer(err))
	}
	if err := b.completeLeg1(key, More{Leg1: leg1}); err != nil {
		return err
	}
	if act.Topic != "" {
		b.wait(Wait{
			GUID: WakeUpGUID(leg1, journal.BySignal, ""), Job: b.m.Job, Activity: key.Activity, DAD: key.DAD,
			Topic: act.Topic, Key: name, Repeat: act.Repeat, MaxAge: Micros(act.MaxAge.Microseconds()),
			Since: b.s.Now, Origin: b.p.Entry.Seq,
		})
	}
	if act.HasSleep {
		b.timer(Row{
			GUID: WakeUpGUID(leg1, journal.ByTimer, ""), Kind: journal.MessageWakeUp, NextAt: at,
			Body: journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: CodeOK, By: journal.ByTimer}),
		}, key)
	}
	b.bound(key, act, leg1)
	return nil
}

// bound is the answer that ends an activity which nobody ends within its time
// (E9).
func (b *builder) bound(key InstanceKey, act *flow.Activity, leg1 journal.GUID) {
	if act.Within <= 0 {
		return
	}
	message := fmt.Sprintf("%s was not ended within %s", act.Name, act.Within)
	b.timer(Row{
		GUID: ResponseGUID(leg1, 0), Kind: journal.MessageAnswer, NextAt: b.s.Now + Micros(act.Within.Microseconds()),
		Body: errorAnswer(CodeTimeout, "within", message),
	}, key)
}

// await orders the first child (1.11).
func (b *builder) await(key InstanceKey, act *flow.Activity, leg1 journal.GUID) error {
	more := More{Leg1: leg1, Turn: 1, Try: 1, Child: ChildID(leg1, 1)}
	scope, err := b.inputs(act, key.DAD)
	if err != nil {
		return err
	}
	row, err := b.order(scope, key, act, more, b.s.Now)
	if err != nil {
		return b.answer(key, leg1, expressionAnswer(err))
	}
	if err := b.completeLeg1(key, more); err != nil {
		return err
	}
	b.send(row)
	b.bound(key, act, leg1)
	return nil
}

// order is the start of the child that the await is in the turn of; at is when
// it begins.
func (b *builder) order(scope flow.Scope, key InstanceKey, act *flow.Activity, more More, at Micros) (Row, error) {
	child, err := act.Child(scope)
	var input []byte
	if err == nil {
		input, err = act.Input(scope)
	}
	if err != nil {
		return Row{}, err
	}
	o := &StartOrder{Flow: child.Flow, Version: child.Version, Key: child.ID, Input: input}
	return b.ordered(key, act, more, o, at)
}

// ordered is the row of an order, whose parent and default key it sets.
func (b *builder) ordered(key InstanceKey, act *flow.Activity, more More, o *StartOrder, at Micros) (Row, error) {
	o.Parent = journal.Parent{
		Space: b.s.Job.Space, Job: b.m.Job, Activity: key.Activity, DAD: string(key.DAD),
		Leg1: more.Leg1, Turn: more.Turn, Awaited: act.Awaited,
	}
	return b.startRow(o, more.Child, act.Name, at)
}

// startRow is the row of the order of a job, due at the given time. A key that
// it lacks is made of the job's own and the name.
func (b *builder) startRow(o *StartOrder, child journal.JobID, name string, at Micros) (Row, error) {
	o.Trace = b.s.Job.Trace
	if o.Key == "" {
		o.Key = childKey(b.s.Job.Key, name, child)
	}
	body, err := json.Marshal(o)
	if err != nil {
		return Row{}, errBroken("the order of a child: " + err.Error())
	}
	row := Row{
		GUID: child.Start(), Job: child, Kind: journal.MessageStart, DAD: RootDAD, Body: body,
		Origin: b.p.Entry.Seq, NextAt: at,
	}
	if o.Parent.Awaited {
		row.Sender = b.m.Job
	}
	if at <= b.s.Now {
		row.published(b.s.Now, b.mode.Resend)
	}
	return row, nil
}

// maxChildKey bounds the key that is derived for a child, bytes.
const maxChildKey = 512

// childKey is the key of a child whose await names none: readable, and never
// that of another child.
func childKey(parent, activity string, child journal.JobID) string {
	end := "/" + activity + "-" + hex.EncodeToString(child[:6])
	keep := min(len(parent), maxChildKey-len(end))
	for keep > 0 && keep < len(parent) && parent[keep]&0xC0 == 0x80 { // not within a character
		keep--
	}
	return parent[:keep] + end
}
