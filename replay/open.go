package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Open is something that is still to be done: a dispatch row, a wait, a child
// that is awaited, or the completion tasks of a closed job.
type Open struct {
	What     string // the kind of the row; wait, child, or tasks
	GUID     journal.GUID
	Activity string
	DAD      string
	Element  int // under `each`
	Turn     int
	Try      int
	NextAt   int64 // µs, as the last entry left it; 0 unknown or never
	Held     string
	Topic    string        // of a request or a wait
	Key      string        // of a wait
	Job      journal.JobID // the child
	Since    int64         // seq of the entry that made it
	// Request is that of the durable function that a timer, a wait or a child is
	// for, and Name what it calls it (E12).
	Request journal.GUID
	Name    string
	// Suspended says of a request that its function waits; Pauses counts what for,
	// and Came what of it has come since.
	Suspended    bool
	Pauses, Came int
}

// Open lists what is still to be done, oldest first.
func (j *Job) Open() []Open {
	out := make([]Open, 0, len(j.Rows)+len(j.Waits)+len(j.Children)+1)
	for g, r := range j.Rows {
		out = append(out, j.openRow(g, r))
	}
	for g, w := range j.Waits {
		open := Open{
			What: "wait", GUID: g, Activity: w.Activity, DAD: string(w.DAD), Topic: w.Topic, Key: w.Key, Since: w.Origin,
		}
		j.openFor(&open, g)
		out = append(out, open)
	}
	for g, c := range j.Children {
		open := Open{
			What: "child", GUID: g, Activity: c.Activity, DAD: string(c.DAD), Turn: c.Turn, NextAt: c.At, Job: c.Job, Since: c.Origin,
		}
		if i := j.Instances[c.key()]; i != nil && i.Child == c.Job {
			open.Try = i.Try
		}
		j.openFor(&open, g)
		out = append(out, open)
	}
	slices.SortFunc(out, func(a, b Open) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Element, b.Element), bytes.Compare(a.GUID[:], b.GUID[:]))
	})
	if j.ClosedAt > 0 && !j.Tasks {
		out = slices.Insert(out, 0, Open{What: "tasks", GUID: j.Closer, Since: j.ClosedAt})
	}
	return out
}

func (j *Job) openRow(g journal.GUID, r *Row) Open {
	open := Open{
		What: string(r.Kind), GUID: g, Activity: r.Activity, DAD: string(r.DAD), Element: r.Element,
		Turn: r.Turn, Try: r.Try, NextAt: r.NextAt, Held: r.Held, Topic: r.Topic, Since: r.Origin,
		Suspended: r.asleep(),
	}
	for _, g := range r.Pauses {
		open.Pauses++
		if p := j.Pauses[g]; p != nil && p.Taken > 0 {
			open.Came++
		}
	}
	if r.Kind == journal.MessageWakeUp || r.Kind == journal.MessageOutcome {
		j.openFor(&open, g)
	}
	return open
}

// openFor says which function something stands for, and what it calls it.
func (j *Job) openFor(o *Open, g journal.GUID) {
	if _, p := j.standsFor(g); p != nil {
		o.Request, o.Name = p.Request, p.Name
	}
}

// String says in a line what is to be done, for people.
func (o Open) String() string {
	parts := make([]string, 0, 8)
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	kind := journal.MessageKind(o.What)
	switch timed := o.NextAt > 0; {
	case o.What == "wait":
		add("waits for signal %s with key %q", o.Topic, o.Key)
	case o.What == "child":
		add("child %s", o.Job)
	case o.What == "tasks":
		add("the completion tasks of the job")
	case kind == journal.MessageRequest && o.Topic != "":
		add("request to %s", o.Topic)
	case kind == journal.MessageWakeUp && timed:
		add("timer")
	case kind == journal.MessageAnswer && timed && o.Turn == 0:
		add("bound")
	default:
		add("%s", o.What)
	}
	if o.Name != "" {
		add("%q of a function", o.Name)
	}
	if o.Suspended {
		add("suspended")
	}
	if o.Pauses > 0 {
		add("waits for %d, of which %d came", o.Pauses, o.Came)
	}
	if o.Element > 0 {
		add("element %d", o.Element)
	}
	if o.Turn > 1 || o.Try > 1 {
		add("turn %d, try %d", o.Turn, o.Try)
	}
	if o.NextAt > 0 {
		add("due %s", time.UnixMicro(o.NextAt).UTC().Format(time.RFC3339))
	}
	if o.Held != "" {
		add("held: %s", o.Held)
	}
	add("since entry %d", o.Since)
	return strings.Join(parts, ", ")
}

// Pending is one open obligation with what stands for it (C13). A job ends when
// it has none.
type Pending struct {
	GUID journal.GUID // of the message that made it
	Obligation
	Ledger collation.ActivityLedger // of its instance
	// Open of Count elements have not ended, under `each`; Turn and Try are those
	// of an await.
	Open, Count int
	Turn, Try   int
	// For is what it waits for: nothing else can end it.
	For []Open
}

// Pending lists the open obligations, oldest first, each with what it waits
// for.
func (j *Job) Pending() []Pending {
	open := make(map[collation.InstanceKey][]Open)
	for _, o := range j.Open() {
		key := collation.InstanceKey{Activity: o.Activity, DAD: collation.DAD(o.DAD)}
		open[key] = append(open[key], o)
	}
	out := make([]Pending, 0, len(j.Obligations))
	for g, ob := range j.Obligations {
		key := collation.InstanceKey{Activity: ob.Activity, DAD: ob.DAD}
		p := Pending{GUID: g, Obligation: ob, For: open[key]}
		if i := j.Instances[key]; i != nil {
			p.Ledger, p.Open, p.Count, p.Turn, p.Try = i.Ledger, i.Open, i.Count, i.Turn, i.Try
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Pending) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Activity, b.Activity), bytes.Compare(a.GUID[:], b.GUID[:]))
	})
	return out
}
