package replay

import (
	"bytes"
	"strconv"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// fold updates the state by one entry. An entry that contradicts the state is followed, too:
// the laws have reported it before.
func (j *Job) fold(e *journal.Entry, f facts, hash journal.Digest) {
	head := journal.Head{Seq: e.Seq, Hash: hash}
	if !e.Chain.IsZero() {
		j.Chains[e.Chain] = head
		j.foldEffect(e)
		j.foldReleased(e)
		return
	}
	j.At = head
	j.foldDigits(e, &f)
	j.foldResult(e, &f)
	j.foldAccepted(e, &f)
	j.foldPauses(e, &f)
	j.foldWork(e, &f)
	j.foldRows(e, &f)
	j.foldObligations(e, &f)
	j.foldState(e, &f)
	if e.From != nil {
		j.From = e.From
	}
	if e.Kind == journal.KindResumed {
		j.Next = e.Next
	}
}

// foldDigits takes over the ledgers that the entry changes.
func (j *Job) foldDigits(e *journal.Entry, f *facts) {
	for _, m := range f.moves {
		j.instance(keyOf(&m)).Ledger = collation.ActivityLedger(m.After)
	}
	if !e.Receipts() {
		return
	}
	r := j.Receipts[e.GUID]
	if r == nil {
		r = &Receipt{Seq: e.Seq, Row: f.rowID, Message: f.message, Activity: f.key.Activity, DAD: f.key.DAD}
		j.Receipts[e.GUID] = r
	}
	r.Ledger, r.Verdict = collation.GUIDLedger(e.Receipt), journal.VerdictHandled
	if e.Kind == journal.KindStale {
		r.Verdict = journal.VerdictStale
	}
	// The entry that ends the row removes the receipt, except that of the close and of an
	// interrupt.
	r.gone = !e.Ended.IsZero() && !guidDigits.set(gSnapshot, e.Receipt) && f.message != journal.MessageInterrupt
	r.Kind, r.Code, r.By, r.err = f.kind, f.code, f.by, f.err
	if e.Response != nil {
		r.Element, r.pauses = e.Response.Element, e.Response.Pauses
	}
	if guidDigits.set(gStep2, e.Receipt) {
		r.err, r.pauses = nil, nil
	}
}

func keyOf(m *journal.LedgerMove) collation.InstanceKey {
	return collation.InstanceKey{Activity: m.Activity, DAD: collation.DAD(m.DAD)}
}

// ledger is the ledger of an instance after the entries so far.
func (j *Job) ledger(key collation.InstanceKey) journal.Ledger {
	if i := j.Instances[key]; i != nil {
		return journal.Ledger(i.Ledger)
	}
	return 0
}

// foldResult finds where results are (J7): a response's from its step 1 on, replaced by what
// the engine makes of it in step 2 or by the error of an expression (E11); the input of the
// created entry; the output of an activity without a response.
func (j *Job) foldResult(e *journal.Entry, f *facts) {
	var r *Receipt
	if e.Kind == journal.KindLeg2 && !f.start {
		r = j.Receipts[e.GUID]
	}
	if r != nil && j.outputs && e.Response != nil {
		r.output = bytes.Clone(e.Response.Output)
	}
	answered := f.kind == journal.ResponseTerminal || f.kind == journal.ResponsePass
	if r != nil && f.marks.has(work) && answered && j.ClosedAt == 0 {
		j.recorded(f.resultKey(r), r.Seq, f.responseCode(e, r), r.output)
		r.output = nil
	}
	switch {
	case e.Kind == journal.KindCreated:
		j.recorded(f.key, e.Seq, codeOK, e.Input)
	case e.Result != nil && j.ClosedAt == 0:
		j.recorded(f.at, e.Seq, e.Result.Code, e.Result.Output)
	case failedExpression(e) && (f.decides || f.minus):
		j.recorded(f.at, e.Seq, codeInternal, nil)
	}
}

// resultKey is where the response of a message is recorded; an element has a name of its own.
func (f *facts) resultKey(r *Receipt) collation.InstanceKey {
	if f.inst == nil || f.inst.Count == 0 {
		return f.at
	}
	return collation.InstanceKey{Activity: f.key.Activity + "[" + strconv.Itoa(r.Element) + "]", DAD: f.key.DAD}
}

// responseCode is the code of the response itself.
func (f *facts) responseCode(e *journal.Entry, r *Receipt) int {
	if e.Response != nil {
		return e.Response.Code
	}
	return r.Code
}

func (j *Job) recorded(key collation.InstanceKey, seq int64, code int, output []byte) {
	var at *Recorded
	if i := j.Instances[key]; i != nil {
		at = &i.Recorded
	} else if at = j.Passes[key]; at == nil {
		at = &Recorded{}
		j.Passes[key] = at
	}
	at.ResultSeq, at.Code = seq, code
	if at.Output = nil; j.outputs {
		at.Output = bytes.Clone(output)
	}
}

// foldObligations recounts the open obligations (C13). An instance is one from its dispatch to
// the message that ends it. The obligation of a cycle moves to its pivot. A close ends the
// rest.
func (j *Job) foldObligations(e *journal.Entry, f *facts) {
	if e.Kind == journal.KindCreated {
		j.Obligations[e.GUID] = Obligation{e.Activity, collation.DAD(e.DAD), e.Seq}
	}
	if f.minus {
		delete(j.Obligations, f.obligation(e))
	}
	for i := range e.Dispatched {
		switch d := &e.Dispatched[i]; d.Kind {
		case journal.MessageCycle:
			delete(j.Obligations, e.GUID)
			fallthrough
		case journal.MessageLeg1:
			j.Obligations[d.GUID] = Obligation{d.Activity, collation.DAD(d.DAD), e.Seq}
		}
	}
	if f.marks.has(closed) {
		clear(j.Obligations)
	}
	if e.Semaphore != nil {
		j.Semaphore = *e.Semaphore
	}
}

// obligation is the one that the message ends: its own, or that of its instance's Leg1.
func (f *facts) obligation(e *journal.Entry) journal.GUID {
	own := f.start || e.Kind == journal.KindLeg1 || f.message == journal.MessageCycle
	if own || f.inst == nil {
		return e.GUID
	}
	return f.inst.Leg1
}

// foldState follows the state of the job (C16).
func (j *Job) foldState(e *journal.Entry, f *facts) {
	switch {
	case e.Kind == journal.KindCreated:
		j.State, j.Started, j.Parent = journal.JobOpen, e.Time, e.Parent
		if e.Flow != nil {
			j.Flow = *e.Flow
		}
	case e.Kind == journal.KindQuarantine:
		j.State = journal.JobQuarantined
	case repairs(e) && j.ClosedAt > 0:
		j.State = j.Close.State
	case repairs(e):
		j.State = journal.JobOpen
	}
	if f.marks.has(closed) && j.ClosedAt == 0 {
		j.Closer, j.ClosedAt, j.Ended = e.GUID, e.Seq, e.Time
		if e.Close != nil {
			j.State = e.Close.State
			j.Close = Outcome{e.Close.State, e.Close.Code}
		}
	}
	if f.marks.has(tasks) && e.GUID == j.Closer {
		j.TasksAt = e.Seq
	}
}

// foldEffect follows one effect key (3.1). An outcome stays, unless an operator voids it.
func (j *Job) foldEffect(e *journal.Entry) {
	if e.Effect == nil {
		return
	}
	f := j.Effects[e.Effect.Key]
	if f == nil {
		f = &Effect{
			Request: e.Chain, Name: e.Effect.Name, Class: e.Effect.Class, N: e.Effect.N, Position: e.Effect.Position,
			Fence: e.Effect.Fence,
		}
		j.Effects[e.Effect.Key] = f
	}
	if voids(e) && f.State == EffectCompleted {
		f.State, f.Result, f.Voided = EffectNotDone, ResultDigest(nil, e.Effect.Error), true
		return
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

// ClassVoided is the class of the error by which an operator voids a recorded result, so that
// the call runs again under the next key (3.3).
const ClassVoided = "voided"

// ClassUndo is the class of the effect that stands for a registered compensation. It starts
// with the registration, and is completed when the compensation has run (3.5).
const ClassUndo = "undo"

// voids reports whether the entry voids a recorded result.
func voids(e *journal.Entry) bool {
	return e.Kind == journal.KindEffectFailed && e.Effect.Error != nil && e.Effect.Error.Class == ClassVoided
}

// ResultDigest is the digest by which results of effects are compared (V9), over the canonical
// result and the error, length-prefixed. It is zero if there is neither.
func ResultDigest(result []byte, f *journal.Failure) journal.Digest {
	if result == nil && f == nil {
		return journal.Digest{}
	}
	h := newHasher()
	h.bool(result != nil)
	h.bytes(result)
	if f != nil {
		h.text(f.Class)
		h.text(f.Message)
		h.bytes(f.Data)
	}
	return h.sum()
}
