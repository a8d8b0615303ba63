package replay

import (
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

// one is 1 for a mark that is set: the increment of its digit.
func (m marks) one(x marks) int64 {
	if m.has(x) {
		return 1
	}
	return 0
}

// facts is what fold and laws ask of an entry, given the state before it.
type facts struct {
	marks   marks
	key     collation.InstanceKey
	start   bool // the job's start message
	known   *Receipt
	after   collation.GUIDLedger // of the message's receipt
	kind    journal.ResponseKind // of what the message brought, in this entry or before
	code    int
	licence journal.GUID // the row that licenses the message
	n       int          // children dispatched (N of C13)
	// ends: this entry ends its activity. pending: it is the last of a pending
	// response, which leaves the activity open (C12).
	ends, pending bool
	// last: the message's last marker is set here, and its licence ends (1.4).
	last bool
}

// read gathers the facts of an entry of the main chain.
func (j *Job) read(e *journal.Entry) facts {
	f := facts{
		key:   collation.InstanceKey{Activity: e.Activity, DAD: collation.DAD(e.DAD)},
		start: e.GUID == e.Job.Start(), known: j.Receipts[e.GUID],
	}
	for _, m := range e.Marks {
		f.marks |= markOf[m]
	}
	for i := range e.Dispatched {
		if e.Dispatched[i].Kind == journal.MessageLeg1 {
			f.n++
		}
	}
	f.licence = j.licence(e, f.known)
	if f.known != nil {
		f.after, f.kind, f.code = f.known.Ledger, f.known.Kind, f.known.Code
	}
	for i := range e.Receipts {
		if e.Receipts[i].GUID == e.GUID {
			f.after = collation.GUIDLedger(e.Receipts[i].After)
		}
	}
	if e.Response != nil {
		f.kind, f.code = e.Response.Kind, e.Response.Code
	}
	step2 := f.marks.has(children) && !f.marks.has(afterClose)
	answers := e.Kind == journal.KindLeg2 && !f.start
	f.pending = step2 && answers && f.kind != journal.ResponseTerminal
	f.ends = step2 && !f.pending && (e.Kind == journal.KindLeg2 || e.Kind == journal.KindLeg1)
	f.last = f.lastMarker(e)
	return f
}

// licence names the row that stands for the entry's message (C5): its own, for
// a response its request's.
func (j *Job) licence(e *journal.Entry, known *Receipt) journal.GUID {
	switch {
	case known != nil:
		return known.Row
	case j.Rows[e.GUID] != nil:
		return e.GUID
	case e.Response != nil && !e.Response.Request.IsZero():
		return e.Response.Request
	case e.Kind == journal.KindStale && len(e.Ended) == 1:
		return e.Ended[0]
	}
	return e.GUID
}

func (f *facts) lastMarker(e *journal.Entry) bool {
	switch e.Kind {
	case journal.KindStale:
		return true
	case journal.KindLeg1:
		// Category B goes on with the steps of its own receipt (1.11).
		withSteps := f.known != nil || len(e.Receipts) > 0
		return f.marks.has(work) && (!withSteps || f.after.Complete())
	case journal.KindLeg2:
		return f.after.Complete() && !f.pending
	}
	return false
}
