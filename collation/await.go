package collation

// An await is answered by a child job. It reads the results that the child's order mentions. It
// decides whether an outcome comes from the current child, and whether a failed child is tried
// again. It writes the child's start row and its own bound (`within`).

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// await orders the first child (1.11).
func (b *builder) await(t *task) error {
	end, err := b.pastChild(t.key, 0, nil)
	switch gone := (*goneError)(nil); {
	case errors.As(err, &gone):
		return b.answer(t, errorAnswer(CodeInternal, classExpired, gone.Error()))
	case err != nil:
		return err
	case end != nil:
		return b.answer(t, journal.EncodeResponse(end.response()))
	}
	more := More{Leg1: t.leg1, Turn: 1, Attempt: 1, Child: ChildID(t.leg1, 1)}
	row, err := b.order(t, more, b.s.Now)
	if err != nil {
		return b.answer(t, expressionAnswer(err))
	}
	if err := b.completeLeg1(t.key, more); err != nil {
		return err
	}
	b.insertRow(row)
	b.bound(t)
	return nil
}

// order makes the start row of the child of the await's current turn; at is when it begins.
func (b *builder) order(t *task, more More, at Micros) (Row, error) {
	child, err := t.act.Child(t)
	var input []byte
	if err == nil {
		input, err = t.act.Input(t)
	}
	if err != nil {
		return Row{}, err
	}
	o := &StartOrder{Flow: child.Flow, Version: child.Version, Key: child.ID, Input: input}
	return b.ordered(t, more, o, at)
}

// ordered sets the order's parent, and makes the start row.
func (b *builder) ordered(t *task, more More, o *StartOrder, at Micros) (Row, error) {
	o.Parent = journal.Parent{
		Space: b.s.Job.Space, Job: b.m.Job, Activity: t.key.Activity, DAD: string(t.key.DAD),
		Leg1: more.Leg1, Turn: more.Turn, Awaited: t.act.Awaited,
	}
	return b.startRow(o, more.Child, t.act.Name, at)
}

// startRow makes the start row of a job, due at the given time. An order without a key gets one
// that is made of the job's own key and the name.
func (b *builder) startRow(o *StartOrder, child journal.JobID, name string, at Micros) (Row, error) {
	o.Trace = b.s.Job.Trace
	if o.Parent.Awaited {
		o.Parent.Depth = b.s.Job.depth() + 1
	}
	if o.Key == "" {
		o.Key = ChildKey(b.s.Job.Key, name, child)
	}
	o.Key = b.kept(o.Key)
	var body bytes.Buffer
	text := json.NewEncoder(&body)
	text.SetEscapeHTML(false) // the input stays canonical: its sum is in the entry (W12)
	if err := text.Encode(o); err != nil {
		return Row{}, errBroken("the order of a child: " + err.Error())
	}
	row := Row{
		GUID: child.Start(), Job: child, Kind: journal.MessageStart, DAD: RootDAD,
		Body:   bytes.TrimSuffix(body.Bytes(), []byte("\n")),
		Origin: b.p.Entry.Seq, NextAt: at,
	}
	if o.Parent.Awaited {
		row.Sender = b.m.Job
	}
	if at <= b.s.Now {
		row.published(b.s.Now, &b.mode)
	}
	return row, nil
}

// classExpired is the class of the error of an await whose child has expired.
const classExpired = "expired"

// maxChildKey bounds the derived key of a child, in bytes.
const maxChildKey = 512

// ChildKey is the key of a child whose await, an activity of the job with the key parent, names none. It
// is readable and unique.
func ChildKey(parent, activity string, child journal.JobID) string {
	end := "/" + activity + "-" + hex.EncodeToString(child[:6])
	keep := min(len(parent), maxChildKey-len(end))
	for keep > 0 && keep < len(parent) && parent[keep]&0xC0 == 0x80 { // do not cut a character in two
		keep--
	}
	return parent[:keep] + end
}

// arbitrateChild accepts an outcome only from the child of the current turn. The await's bound
// may end it only while no outcome is being handled.
func (b *builder) arbitrateChild(inst *Instance) Outcome {
	switch {
	case b.m.Kind == journal.MessageOutcome && b.m.Response.Child != inst.Child:
		return Stale
	case b.m.Kind != journal.MessageOutcome && inst.Child == (journal.JobID{}):
		return Later
	}
	return ""
}

// awaits reports whether the activity is answered by a child.
func awaits(a *flow.Activity) bool { return a.Type == flow.TypeAwait }

// retryChild orders the next child after one that failed, due at the retry time
// (1.11).
func (b *builder) retryChild() error {
	inst, err := b.instance(b.key)
	if err != nil {
		return err
	}
	at := b.s.Now + retryDelay(b.act.Retry, inst.Attempt, 0, b.m.GUID)
	inst.Turn++
	inst.Attempt++
	inst.Child = ChildID(inst.Leg1, inst.Turn)
	t, err := b.task(b.key, b.act, inst.Leg1)
	if err != nil {
		return err
	}
	row, err := b.order(t, inst.More, at)
	if err != nil { // an expression may fail now: other activities have run since the first attempt
		row, err = b.ordered(t, inst.More, &StartOrder{Input: []byte("null"), Fault: short(err)}, at)
	}
	if err != nil {
		return err
	}
	b.put(b.key, inst)
	b.insertRowAt(row, at)
	b.end()
	return nil
}
