package inspect

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// arrive makes up the row of a message that no entry of the job dispatched: the delivery of a signal,
// the outcome of a child, an interrupt. It is known from the entry on that handles it.
func (s *state) arrive(x *step) {
	e, r := x.e, row{key: x.key}
	switch response := e.Response; {
	case e.Kind == journal.KindInterrupt, e.Kind == journal.KindDeadLetter && e.Activity == "":
		r.kind = journal.MessageInterrupt
	case e.Kind != journal.KindLeg2 && e.Kind != journal.KindStale && e.Kind != journal.KindDeadLetter, x.inst == nil:
		return
	case response != nil && response.By == journal.BySignal:
		r.kind = journal.MessageWakeUp
	case response != nil && !response.Child.IsZero():
		r.kind, r.child, r.turn = journal.MessageOutcome, response.Child, response.Turn
	case e.Kind == journal.KindLeg2:
		return
	default: // it is stale or held, so the entry does not say what it brought
		r.kind, r.child, r.turn = s.unsaid(x)
	}
	if r.kind == "" {
		return
	}
	if r.kind == journal.MessageWakeUp {
		if w := s.waits[e.GUID]; w != nil && !w.Request.IsZero() {
			r.origin = w.Origin
		} else if _, w := s.waitOf(x.inst); w != nil {
			r.origin = w.Origin
		}
	}
	s.rows[e.GUID] = &r
}

// unsaid finds out what a message is by its GUID; "": it cannot be told.
func (s *state) unsaid(x *step) (kind journal.MessageKind, child journal.JobID, turn int) {
	e, i := x.e, x.inst
	for turn := i.Turn; turn > 0; turn-- {
		child := journal.DeriveChild(i.Leg1, turn)
		if journal.DeriveOutcome(child.Start(), turn) == e.GUID {
			return journal.MessageOutcome, child, turn
		}
	}
	wait := journal.DeriveWakeUp(i.Leg1, journal.BySignal, "")
	guid := s.wakers[e.GUID]
	p := s.pauses[guid]
	switch {
	case p != nil && p.Kind == journal.PauseChild:
		return journal.MessageOutcome, journal.JobID(guid), 0
	case p != nil && p.Kind == journal.PauseSignal && e.GUID == guid, !i.repeat && e.GUID == wait, s.undelivered(e):
		return journal.MessageWakeUp, child, 0
	}
	return "", child, 0
}

// undelivered reports the wake-up of a repeating hook that its entry names without handing it over.
func (s *state) undelivered(e *journal.Entry) bool {
	for n := range e.Undelivered {
		d := &e.Undelivered[n]
		i := s.instances[instanceKey(d.Activity, d.DAD)]
		if i != nil && i.repeat &&
			journal.DeriveSignalled(journal.DeriveWakeUp(i.Leg1, journal.BySignal, ""), d.Signal) == e.GUID {
			return true
		}
	}
	return false
}

// sender is the instance whose Leg1, the entry's own or one that it folds, fits; otherwise the
// entry's own (C11).
func sender(e *journal.Entry, fits func(leg1 journal.GUID) bool) collation.InstanceKey {
	if e.Kind != journal.KindLeg1 || !fits(e.GUID) {
		for i := range e.Dispatched {
			if d := &e.Dispatched[i]; d.Folded != 0 && fits(d.GUID) {
				return instanceKey(d.Activity, d.DAD)
			}
		}
	}
	return instanceKey(e.Activity, e.DAD)
}

// work records what the Leg1 messages of an entry did besides rows.
func (s *state) work(x *step) {
	e := x.e
	if e.Kind == journal.KindCreated || e.Kind == journal.KindLeg1 {
		s.instance(x.key).Leg1 = e.GUID
	}
	for i := range e.Dispatched {
		if d := &e.Dispatched[i]; d.Folded != 0 {
			s.instance(instanceKey(d.Activity, d.DAD)).Leg1 = d.GUID
		}
	}
	if x.element {
		x.inst.Open--
	}
	for i := range e.Waits {
		s.wait(e, &e.Waits[i])
	}
	if e.Elements != nil {
		s.elements(e, e.Elements)
	}
}

func (s *state) wait(e *journal.Entry, w *journal.Wait) {
	key := instanceKey(e.Activity, e.DAD)
	out := &collation.Wait{
		GUID: w.GUID, Job: s.job, Topic: w.Topic, Key: w.Key, Repeat: w.Repeat, Since: collation.Micros(e.Time),
		Origin: e.Seq,
	}
	if p := s.pauses[w.GUID]; p != nil {
		out.Request = p.request
	} else {
		key = sender(e, func(leg1 journal.GUID) bool {
			return journal.DeriveWakeUp(leg1, journal.BySignal, "") == w.GUID
		})
		i := s.instance(key)
		i.repeat, i.since, i.arms = w.Repeat, e.Time, append(i.arms, w.GUID)
	}
	out.Activity, out.DAD = key.Activity, key.DAD
	s.waits[w.GUID] = out
}

// elements inserts the rows that an entry does not list, because their ids follow from the Leg1's
// (1.11).
func (s *state) elements(e *journal.Entry, x *journal.Elements) {
	key := instanceKey(e.Activity, e.DAD)
	i := s.instance(key)
	i.Open, i.Count = x.Count, x.Count
	for n := range min(x.Count, flow.MaxElements) {
		r := &row{kind: journal.MessageRequest, key: key, element: n, turn: 1, attempt: 1, origin: e.Seq}
		if x.Inputs.At(n).IsZero() && s.from != nil { // it was answered in the job before
			r.kind = journal.MessageAnswer
		}
		if n >= x.Parallel {
			r.held = collation.HeldParallel
		}
		s.rows[journal.DeriveRequest(e.GUID, n)] = r
	}
}

// move inserts, updates and removes rows, waits and children (T1).
func (s *state) move(x *step) {
	e := x.e
	for i := range e.Dispatched {
		s.dispatch(x, &e.Dispatched[i])
	}
	for i := range e.Updated {
		u := &e.Updated[i]
		if r := s.rows[u.GUID]; r != nil {
			r.kind, r.turn, r.attempt, r.nextAt, r.held = u.Kind, u.Turn, u.Attempt, u.NextAt, u.Held
			s.unpark(u.GUID, r)
		}
	}
	gone := func(guids ...journal.GUID) {
		for _, guid := range guids {
			delete(s.rows, guid)
			delete(s.waits, guid)
			delete(s.children, guid)
		}
	}
	if !e.Ended.IsZero() {
		gone(e.Ended)
	}
	gone(e.CancelledByClose...)
	gone(e.Cancelled...)
	if marked(e, journal.MarkClosed) {
		clear(s.waits) // also those whose signals were delivered, and whose wake-ups were cancelled
	}
}

// release follows the row that the end of an effect released (E4). The entries of the two chains may
// come in any order, so its turn tells which parking is meant.
func (s *state) release(e *journal.Entry) {
	s.chains[e.Chain] = true
	for i := range e.Updated {
		s.released[e.Chain] = max(s.released[e.Chain], e.Updated[i].Turn)
		if r := s.rows[e.Chain]; r != nil {
			s.unpark(e.Chain, r)
		}
	}
}

func (s *state) unpark(guid journal.GUID, r *row) {
	if r.held == collation.HeldParked && r.turn > 0 && s.released[guid] == r.turn {
		r.held = ""
	}
}

func (s *state) dispatch(x *step, d *journal.Dispatched) {
	e := x.e
	switch {
	case d.Folded != 0: // it is handled already
		return
	case !d.Job.IsZero() && d.Kind == journal.MessageStart:
		s.order(x, d)
		return
	case !d.Job.IsZero(): // it is a row of another job
		return
	}
	r := &row{kind: d.Kind, key: instanceKey(d.Activity, d.DAD), topic: d.Topic, nextAt: d.At, origin: e.Seq}
	switch d.Kind {
	case journal.MessageRequest:
		r.turn, r.attempt = 1, 1
	case journal.MessageWakeUp, journal.MessageAnswer:
		if s.pauses[s.wakers[d.GUID]] == nil && d.At > 0 {
			i := s.instance(r.key)
			if i.arms = append(i.arms, d.GUID); d.Kind == journal.MessageWakeUp {
				i.since = e.Time
			}
		}
	}
	s.rows[d.GUID] = r
}

// order records the start of a child: by the suspension of a function, by the Leg1 of an await, or by
// the outcome of the child before it, which failed. A job that runs compensations is no child.
func (s *state) order(x *step, d *journal.Dispatched) {
	e, key := x.e, x.key
	if p := s.pauses[d.GUID]; p != nil {
		s.children[d.GUID] = &child{job: d.Job, key: key, origin: e.Seq}
		return
	}
	if s.undoes(x, d.Job) {
		return
	}
	if !x.pending() {
		key = sender(e, func(leg1 journal.GUID) bool { return journal.DeriveChild(leg1, 1) == d.Job })
	}
	i := s.instance(key)
	i.Turn++
	i.Attempt++
	i.Child = d.Job
	s.children[d.GUID] = &child{job: d.Job, key: key, turn: i.Turn, at: d.At, origin: e.Seq}
}

// pending reports a response that leaves its activity open and decides nothing (C12).
func (x *step) pending() bool {
	return x.e.Kind == journal.KindLeg2 && marked(x.e, journal.MarkChildren) && !marked(x.e, journal.MarkAfterClose) &&
		!x.start && x.message != journal.MessageCycle && x.kind != journal.ResponsePass &&
		x.kind != journal.ResponseTerminal
}

// undoes reports a job that runs the compensations of a request that the entry ends (3.5).
func (s *state) undoes(x *step, job journal.JobID) bool {
	if x.endsRequest(s) && journal.DeriveUndo(x.row) == job {
		s.undone[x.row] = true
		return true
	}
	for _, guid := range x.e.CancelledByClose {
		if r := s.rows[guid]; r != nil && r.turn > 0 && journal.DeriveUndo(guid) == job {
			s.undone[guid] = true
			return true
		}
	}
	return false
}
