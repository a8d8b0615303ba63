package replay

import (
	"bytes"
	"crypto/sha256"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// fold moves the state on by one entry. Where an entry contradicts the state,
// the entry is followed: the laws have reported it before.
func (j *Job) fold(e *journal.Entry, f facts, hash journal.Digest) {
	head := journal.Head{Seq: e.Seq, Hash: hash}
	if !e.Chain.IsZero() {
		j.Chains[e.Chain] = head
		j.foldEffect(e)
		return
	}
	j.At = head
	j.foldDigits(e, f)
	j.foldResult(e, f)
	j.foldRows(e)
	j.foldObligations(e, f)
	j.foldState(e, f)
}

// foldDigits takes over the ledgers that the entry moved.
func (j *Job) foldDigits(e *journal.Entry, f facts) {
	for i := range e.Ledgers {
		m := &e.Ledgers[i]
		key := collation.InstanceKey{Activity: m.Activity, DAD: collation.DAD(m.DAD)}
		j.instance(key).Ledger = collation.ActivityLedger(m.After)
	}
	for i := range e.Receipts {
		m := &e.Receipts[i]
		r := j.Receipts[m.GUID]
		if r == nil {
			r = &Receipt{Seq: e.Seq, Row: f.licence}
			j.Receipts[m.GUID] = r
		}
		r.Ledger, r.Verdict = collation.GUIDLedger(m.After), m.Verdict
		if m.GUID == e.GUID && e.Response != nil {
			r.Kind, r.Code = e.Response.Kind, e.Response.Code
		}
	}
}

// foldResult finds what the instance's result is (J7): the created entry's
// input, a terminal response from its step 1 on, or the failure of an
// expression that replaced it (E11).
func (j *Job) foldResult(e *journal.Entry, f facts) {
	expression := e.Trouble != nil && e.Trouble.Reason == collation.ReasonExpression
	var r *Receipt
	if e.Kind == journal.KindLeg2 && !f.start {
		r = j.Receipts[e.GUID]
	}
	if r != nil && j.outputs && e.Response != nil {
		r.output = bytes.Clone(e.Response.Output)
	}
	switch {
	case e.Kind == journal.KindCreated:
		j.result(f.key, e.Seq, collation.CodeOK, e.Input)
	case expression && f.ends:
		j.result(f.key, e.Seq, collation.CodeInternal, nil)
	case r != nil && f.marks.has(work) && f.kind == journal.ResponseTerminal && j.ClosedAt == 0:
		j.result(f.key, r.Seq, f.code, r.output)
		r.output = nil
	}
}

func (j *Job) result(key collation.InstanceKey, seq int64, code int, output []byte) {
	i := j.instance(key)
	i.ResultSeq, i.Code = seq, code
	if i.Output = nil; j.outputs {
		i.Output = bytes.Clone(output)
	}
}

// foldRows inserts, updates and removes dispatch rows (T1).
func (j *Job) foldRows(e *journal.Entry) {
	for i := range e.Dispatched {
		d := &e.Dispatched[i]
		row := &Row{Kind: d.Kind, Activity: d.Activity, DAD: collation.DAD(d.DAD), Topic: d.Topic, Origin: e.Seq}
		if d.Kind == journal.MessageRequest {
			row.Turn, row.Try = 1, 1
		}
		j.Rows[d.GUID] = row
	}
	for i := range e.Updated {
		u := &e.Updated[i]
		if row := j.Rows[u.GUID]; row != nil {
			row.Kind, row.Turn, row.Try, row.NextAt, row.Held = u.Kind, u.Turn, u.Try, u.NextAt, u.Held
		}
	}
	for _, gone := range [...][]journal.GUID{e.Ended, e.Withdrawn, e.Folded} {
		for _, g := range gone {
			delete(j.Rows, g)
		}
	}
}

// foldObligations recounts the open obligations (C13): an instance is one from
// its dispatch until the message that ends it; a close takes over the rest.
func (j *Job) foldObligations(e *journal.Entry, f facts) {
	if e.Kind == journal.KindCreated {
		j.Obligations[f.key] = e.Seq
	}
	if f.ends {
		delete(j.Obligations, f.key)
	}
	for i := range e.Dispatched {
		if d := &e.Dispatched[i]; d.Kind == journal.MessageLeg1 {
			j.Obligations[collation.InstanceKey{Activity: d.Activity, DAD: collation.DAD(d.DAD)}] = e.Seq
		}
	}
	if f.marks.has(closed) {
		clear(j.Obligations)
	}
	if e.Semaphore != nil {
		j.Semaphore = e.Semaphore.After
	}
}

// foldState follows the state of the job (C16).
func (j *Job) foldState(e *journal.Entry, f facts) {
	switch {
	case e.Kind == journal.KindCreated:
		j.State, j.Started = journal.JobOpen, e.Time
		if e.Flow != nil {
			j.Flow = *e.Flow
		}
	case e.Kind == journal.KindQuarantine:
		j.State = journal.JobQuarantined
	}
	if f.marks.has(closed) && j.ClosedAt == 0 {
		j.Closer, j.ClosedAt, j.Ended = e.GUID, e.Seq, e.Time
		if e.Close != nil {
			j.State = e.Close.State
			j.Close = Outcome{e.Close.State, e.Close.Code}
		}
	}
	if f.marks.has(tasks) && e.GUID == j.Closer {
		j.Tasks = true
	}
}

// foldEffect follows one effect key (3.1). A result, once there, stays.
func (j *Job) foldEffect(e *journal.Entry) {
	if e.Effect == nil {
		return
	}
	f := j.Effects[e.Effect.Key]
	if f == nil {
		f = &Effect{Request: e.Chain, Name: e.Effect.Name, Class: e.Effect.Class, N: e.Effect.N}
		j.Effects[e.Effect.Key] = f
	}
	if f.State == EffectCompleted || f.State == EffectNotDone {
		return
	}
	switch e.Kind {
	case journal.KindEffectStarted:
		f.State = EffectStarted
	case journal.KindEffectCompleted:
		f.State, f.Result = EffectCompleted, ResultDigest(e.Effect.Result, e.Effect.Error)
	case journal.KindEffectFailed:
		f.State, f.Result = EffectNotDone, ResultDigest(e.Effect.Result, e.Effect.Error)
	}
}

// ResultDigest is the digest by which results of effects are compared (V9):
// over the canonical result and the error, length-prefixed. No result and no
// error is zero.
func ResultDigest(result []byte, f *journal.Failure) journal.Digest {
	if result == nil && f == nil {
		return journal.Digest{}
	}
	h := hasher{sha256.New()}
	h.bool(result != nil)
	h.bytes(result)
	if f != nil {
		h.text(f.Class)
		h.text(f.Message)
		h.bytes(f.Data)
	}
	return h.sum()
}
