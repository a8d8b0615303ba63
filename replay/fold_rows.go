package replay

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// foldAccepted removes what the accepted message used up: the wait whose signal it brings, or
// the child whose outcome it is.
func (j *Job) foldAccepted(e *journal.Entry, f *facts) {
	if f.row != nil && f.row.Kind == journal.MessageOutcome {
		delete(j.Children, f.row.child.Start())
	}
	r := e.Response
	if e.Kind != journal.KindLeg2 || r == nil || f.inst == nil {
		return
	}
	f.inst.Child = journal.JobID{}
	if r.By != journal.BySignal {
		return
	}
	if g, w := j.waitOf(f.inst); w != nil {
		j.Signals[Consumed{g, r.Signal}] = e.Seq
		w.Passed++
		w.Last = max(w.Last, r.Number)
		if f.consumes(e) {
			delete(j.Waits, g)
		}
	}
}

// foldWork records what the entry's Leg1 messages did besides dispatch rows.
func (j *Job) foldWork(e *journal.Entry, f *facts) {
	switch e.Kind {
	case journal.KindCreated:
		j.instance(f.key).Leg1 = e.GUID
	case journal.KindLeg1:
		i := j.instance(f.key)
		i.Leg1 = e.GUID
		i.Pivot = i.Pivot || f.seeds
	}
	for i := range e.Dispatched {
		if d := &e.Dispatched[i]; d.Folded != 0 {
			j.instance(collation.InstanceKey{Activity: d.Activity, DAD: collation.DAD(d.DAD)}).Leg1 = d.GUID
		}
	}
	if f.elementEnds(e) {
		f.inst.Open--
	}
	for i := range e.Waits {
		j.foldWait(e, &e.Waits[i])
	}
	if x := e.Elements; x != nil {
		j.foldElements(e, f, x)
	}
}

func (j *Job) foldWait(e *journal.Entry, w *journal.Wait) {
	if p := j.Pauses[w.GUID]; p != nil {
		j.Waits[w.GUID] = &Wait{
			Activity: e.Activity, DAD: collation.DAD(e.DAD), Topic: w.Topic, Key: w.Key, Origin: e.Seq,
			Request: p.Request,
		}
		return
	}
	key := attributed(e, func(leg1 journal.GUID) bool {
		return journal.DeriveWakeUp(leg1, journal.BySignal, "") == w.GUID
	})
	i := j.instance(key)
	i.Repeat = w.Repeat
	i.arms = append(i.arms, w.GUID)
	j.Waits[w.GUID] = &Wait{
		Activity: key.Activity, DAD: key.DAD, Topic: w.Topic, Key: w.Key, Repeat: w.Repeat, Origin: e.Seq,
	}
}

// foldElements inserts the rows that the entry does not list, because their ids follow from the
// Leg1's (1.11). It inserts at most flow.MaxElements, whatever the entry says.
func (j *Job) foldElements(e *journal.Entry, f *facts, x *journal.Elements) {
	i := j.instance(f.key)
	i.Open, i.Count, i.Parallel = x.Count, x.Count, x.Parallel
	for n := range min(x.Count, flow.MaxElements) {
		row := &Row{
			Kind: journal.MessageRequest, Activity: f.key.Activity, DAD: f.key.DAD, Element: n, Turn: 1, Attempt: 1,
			Origin: e.Seq,
			Input:  x.Inputs.At(n),
		}
		if row.Input.IsZero() && j.From != nil { // it was answered in the job before
			row.Kind = journal.MessageAnswer
		}
		if n >= x.Parallel {
			row.Held = heldParallel
		}
		j.Rows[journal.DeriveRequest(e.GUID, n)] = row
	}
}

// foldRows inserts, updates and removes dispatch rows, waits and children (T1).
func (j *Job) foldRows(e *journal.Entry, f *facts) {
	if f.arrives {
		row := *f.row
		j.Rows[f.rowID] = &row
	}
	for i := range e.Dispatched {
		j.foldDispatched(e, f, &e.Dispatched[i])
	}
	for i := range e.Updated {
		u := &e.Updated[i]
		if row := j.Rows[u.GUID]; row != nil {
			row.Kind, row.Turn, row.Attempt, row.NextAt, row.Held = u.Kind, u.Turn, u.Attempt, u.NextAt, u.Held
			j.release(u.GUID, row)
		}
	}
	for _, gone := range [...][]journal.GUID{ended(e), e.CancelledByClose, e.Cancelled} {
		for _, g := range gone {
			delete(j.Rows, g)
			delete(j.Waits, g)
			delete(j.Children, g)
		}
	}
	if f.marks.has(closed) {
		clear(j.Waits) // also delivered ones, whose wake-ups were cancelled
	}
}

// foldReleased follows the row that the end of an effect released (E4). Entries of the two
// chains may come in any order: a request is parked once in a turn, so its turn tells which
// parking is meant.
func (j *Job) foldReleased(e *journal.Entry) {
	for i := range e.Updated {
		j.released[e.Chain] = max(j.released[e.Chain], e.Updated[i].Turn)
		if row := j.Rows[e.Chain]; row != nil {
			j.release(e.Chain, row)
		}
	}
}

// release frees a parked row whose effect has ended.
func (j *Job) release(g journal.GUID, row *Row) {
	if row.Held == heldParked && row.Turn > 0 && j.released[g] == row.Turn {
		row.Held = ""
	}
}

func (j *Job) foldDispatched(e *journal.Entry, f *facts, d *journal.Dispatched) {
	if d.Folded != 0 {
		return // handled already
	}
	if !d.Job.IsZero() {
		j.Left++
		if d.Kind == journal.MessageStart && !j.foldUndo(e, f, d) {
			j.foldChild(e, f, d)
		}
		return
	}
	row := &Row{
		Kind: d.Kind, Activity: d.Activity, DAD: collation.DAD(d.DAD), Topic: d.Topic, NextAt: d.At, Origin: e.Seq,
		Input: d.Input,
	}
	switch d.Kind {
	case journal.MessageRequest:
		row.Turn, row.Attempt = 1, 1
	case journal.MessageWakeUp, journal.MessageAnswer:
		if _, p := j.resolvedWait(d.GUID); d.At > 0 && p == nil {
			i := j.instance(row.key())
			i.arms = append(i.arms, d.GUID)
		}
	}
	j.Rows[d.GUID] = row
}

// foldChild records the start of a child: a function orders it by a suspension, an await the
// first one by its Leg1, and a further one by the outcome of a failed one.
func (j *Job) foldChild(e *journal.Entry, f *facts, d *journal.Dispatched) {
	key := f.key
	if p := j.Pauses[d.GUID]; p != nil {
		j.Children[d.GUID] = &Child{
			Job: d.Job, Activity: key.Activity, DAD: key.DAD, Request: p.Request, Input: d.Input, Origin: e.Seq,
		}
		return
	}
	if !f.pending {
		key = attributed(e, func(leg1 journal.GUID) bool { return journal.DeriveChild(leg1, 1) == d.Job })
	}
	i := j.instance(key)
	i.Turn++
	i.Attempt++
	i.Child = d.Job
	j.Children[d.GUID] = &Child{
		Job: d.Job, Activity: key.Activity, DAD: key.DAD, Turn: i.Turn, At: d.At, Input: d.Input, Origin: e.Seq,
	}
}
