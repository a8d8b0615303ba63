package replay

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// marks is a set of journal.Mark.
type marks uint8

const (
	entered marks = 1 << iota
	work
	children
	closed
	tasks
	afterClose
)

var markOf = map[journal.Mark]marks{
	journal.MarkEntered: entered, journal.MarkWork: work, journal.MarkChildren: children,
	journal.MarkClosed: closed, journal.MarkTasks: tasks, journal.MarkAfterClose: afterClose,
}

func (m marks) has(x marks) bool { return m&x != 0 }

// one is 1 if the mark is set: the increment of its digit.
func (m marks) one(x marks) int64 {
	if m.has(x) {
		return 1
	}
	return 0
}

// facts is what fold and laws use of an entry, given the state before it.
type facts struct {
	marks marks
	key   collation.InstanceKey
	at    collation.InstanceKey // address of the pass that the message makes (C6)
	inst  *Instance             // of key; nil: none
	start bool                  // the job's start message
	known *Receipt
	after journal.Ledger       // of the message's receipt
	kind  journal.ResponseKind // kind of what the message brought, in this entry or before
	code  int                  // of the result after this entry
	err   *journal.Failure     // of the result after this entry
	by    journal.By           // what woke a hook

	rowID   journal.GUID // the message's row
	row     *Row         // that row; nil: none
	arrives bool         // it comes from outside, and this entry is the first to mention it
	message journal.MessageKind

	// named is what a suspension waits for, from its step 2 on. arms has the ids of what is
	// registered for it: timers, waits and bounds, starts of children.
	named []namedPause
	arms  map[journal.GUID]*namedPause
	// undoes are the jobs that may run compensations of requests that the entry ends, with these
	// requests (3.5).
	undoes map[journal.JobID]journal.GUID
	// undelivered are the wake-ups of repeating hooks whose signals the entry names without
	// handing them over.
	undelivered map[journal.GUID]*journal.Delivery

	moves []journal.LedgerMove // of activity ledgers
	late  bool                 // it arrives at a join that was taken before (1.10)

	n int // dispatched Leg1 messages (N of C13)
	// What step 2 does. decides: it decides transitions. minus: it ends one obligation.
	// finalizes: +200T. partial: it ends an element that is not the last. pending: its response
	// leaves the activity open and decides nothing (C12).
	decides, minus, finalizes, partial, pending bool
	seeds                                       bool // a pivot's Leg1 makes its first pass
	halts                                       bool // an interrupt closes the job
	// stays: the request's row stays for its next turn. last: the message's last marker is set
	// here, and its row ends (1.4).
	stays, last bool
}

// read gathers the facts of an entry of the main chain.
func (j *Job) read(e *journal.Entry) facts {
	f := facts{
		key:   collation.InstanceKey{Activity: e.Activity, DAD: collation.DAD(e.DAD)},
		start: e.GUID == e.Job.Start(), known: j.Receipts[e.GUID],
	}
	f.inst, f.moves = j.Instances[f.key], e.Moves()
	f.undelivered = j.undelivered(e)
	for i := range f.moves {
		before, after := joinOf(j.ledger(keyOf(&f.moves[i]))), joinOf(f.moves[i].After)
		f.late = f.late || before.taken && after.arrivals > before.arrivals
	}
	for _, m := range e.Marks {
		f.marks |= markOf[m]
	}
	for i := range e.Dispatched {
		if e.Dispatched[i].Kind == journal.MessageLeg1 {
			f.n++
		}
	}
	f.rowID = j.rowOf(e, f.known)
	f.row = j.Rows[f.rowID]
	if f.row == nil && f.known == nil && f.rowID == e.GUID {
		f.row = j.arrival(e, &f)
		f.arrives = f.row != nil
	}
	f.brings(e)
	f.address()
	f.step2(e)
	f.last = f.lastMarker(e)
	f.undoes = j.undoes(e, &f)
	return f
}

// rowOf names the row of the entry's message (C5): its own or, for a response, that of its
// request. A wake-up names the request that it is for, but has a row of its own.
func (j *Job) rowOf(e *journal.Entry, known *Receipt) journal.GUID {
	switch {
	case known != nil:
		return known.Row
	case j.Rows[e.GUID] != nil, e.Response != nil && e.Response.Kind == journal.ResponseWake:
		return e.GUID
	case e.Response != nil && !e.Response.Request.IsZero():
		return e.Response.Request
	case e.Kind == journal.KindStale && !e.Ended.IsZero():
		return e.Ended
	}
	return e.GUID
}

// brings gathers what the message is, and what it brought in this entry or in the one that
// accepted it.
func (f *facts) brings(e *journal.Entry) {
	switch {
	case f.start:
		f.message = journal.MessageStart
	case f.known != nil:
		f.message = f.known.Message
	case f.row != nil && f.row.Kind == journal.MessageRequest:
		f.message = journal.MessageResponse
	case f.row != nil:
		f.message = f.row.Kind
	}
	if f.known != nil {
		f.after, f.kind, f.code = journal.Ledger(f.known.Ledger), f.known.Kind, f.known.Code
		f.by, f.err = f.known.By, f.known.err
	}
	if e.Receipts() {
		f.after = e.Receipt
	}
	if e.Response != nil {
		f.kind, f.code = e.Response.Kind, e.Response.Code
		f.by, f.err = e.Response.By, e.Response.Error
	}
	switch {
	case e.Result != nil:
		f.code, f.err = e.Result.Code, e.Result.Error
	case failedExpression(e):
		f.code = codeInternal
		f.err = &journal.Failure{Class: reasonExpression, Message: e.Trouble.Message}
	}
}

// failedExpression reports whether a transition's expression failed: the error then replaced
// the activity's result (E11).
func failedExpression(e *journal.Entry) bool {
	return e.Trouble != nil && e.Trouble.Reason == reasonExpression
}

// address resolves the pass: where there are passes, the index is the ordinal minus 1 (C6).
func (f *facts) address() {
	f.at = f.key
	if f.inst != nil && (f.inst.Pivot || f.inst.Repeat) && ordinal(f.after) > 1 {
		f.at.DAD = withIndex(f.key.DAD, ordinal(f.after)-1)
	}
}

// step2 finds out what step 2 does, if the entry has one and the job was not closed before.
func (f *facts) step2(e *journal.Entry) {
	f.seeds = e.Kind == journal.KindLeg1 && f.marks.has(work) && f.preSeeded(e)
	f.halts = f.marks.has(closed) && (e.Kind == journal.KindInterrupt || haltsOwn(e, f.marks))
	if !f.marks.has(children) || f.marks.has(afterClose) {
		return
	}
	switch {
	case f.start:
		f.decides, f.minus = true, true
	case e.Kind == journal.KindLeg1:
		pivot := f.seeds || f.inst != nil && f.inst.Pivot
		f.minus, f.decides, f.finalizes = true, !f.halts, !f.halts && !pivot
	case e.Kind != journal.KindLeg2:
	case f.message == journal.MessageCycle:
		f.decides, f.minus = true, true
	case f.kind == journal.ResponsePass:
		f.decides = true
	case f.kind != journal.ResponseTerminal:
		f.pending = true
		f.stays = f.message == journal.MessageResponse || f.message == journal.MessageAnswer
		if f.suspends() {
			f.names(e)
		}
	case f.inst != nil && f.inst.Count > 0 && f.inst.Open != 1:
		f.partial = true
	default:
		f.decides, f.minus, f.finalizes = true, true, true
	}
}

// haltsOwn tells the Leg1 of an interrupt of its own job (category C) from a Leg1 of category B
// that happens to be the last. The latter has a result, or lost it to an expression (1.11).
func haltsOwn(e *journal.Entry, m marks) bool {
	return e.Kind == journal.KindLeg1 && m.has(work) && m.has(children) && e.Result == nil && !failedExpression(e)
}

// preSeeded reports whether a Leg1 counts the first pass of its instance: that of a hook that
// passes through, which has a result and sends nothing.
func (f *facts) preSeeded(e *journal.Entry) bool {
	if e.Result == nil && !failedExpression(e) || slices.ContainsFunc(e.Dispatched, func(d journal.Dispatched) bool {
		return d.Kind == journal.MessageSignal || d.Kind == journal.MessageInterrupt
	}) {
		return false
	}
	var before journal.Ledger
	if f.inst != nil {
		before = journal.Ledger(f.inst.Ledger)
	}
	return activityDigits[gLeg2].value(e.Ledger)-activityDigits[gLeg2].value(before) == 1
}

// elementEnds reports whether the entry is step 2 of a response that ends one element of `each`
// (1.11).
func (f *facts) elementEnds(e *journal.Entry) bool {
	return e.Kind == journal.KindLeg2 && f.marks.has(children) && !f.marks.has(afterClose) &&
		f.kind == journal.ResponseTerminal && f.inst != nil && f.inst.Count > 0
}

// consumes reports whether the entry accepts the signal that ends its hook. The delivery of
// that signal has ended the wait, too.
func (f *facts) consumes(e *journal.Entry) bool {
	r := e.Response
	return e.Kind == journal.KindLeg2 && f.inst != nil && r != nil && r.By == journal.BySignal &&
		r.Kind == journal.ResponseTerminal
}

func (f *facts) lastMarker(e *journal.Entry) bool {
	switch e.Kind {
	case journal.KindStale:
		return true
	case journal.KindInterrupt:
		return complete(f.after)
	case journal.KindLeg1:
		if f.known != nil || e.Receipts() { // categories B and C continue with steps (1.11)
			return complete(f.after)
		}
		return f.marks.has(work)
	case journal.KindLeg2:
		return complete(f.after) && !f.stays
	}
	return false
}
