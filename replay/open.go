package replay

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// Open is something still to be done: a dispatch row, a wait, an awaited child, or the
// completion tasks of a closed job.
type Open struct {
	What     string // the kind of the row; wait, child, or tasks
	GUID     journal.GUID
	Activity string
	DAD      string
	Element  int // under `each`
	Turn     int
	Attempt  int
	NextAt   int64 // µs, as the last entry left it; 0: unknown or never
	Held     string
	Input    journal.Sum   // of the input of a request or a child; zero: none
	Topic    string        // of a request or a wait
	Key      string        // of a wait
	Job      journal.JobID // the child
	Since    int64         // seq of the entry that made it
	// Request is the request of the durable function to which a timer, a wait or a child
	// belongs; Name is the function's name for it (E12).
	Request journal.GUID
	Name    string
	// Suspended says that the function of the request waits; Pauses is for how many things, and
	// Came how many of them have come.
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
			What: "child", GUID: g, Activity: c.Activity, DAD: string(c.DAD), Turn: c.Turn, NextAt: c.At, Job: c.Job,
			Input: c.Input, Since: c.Origin,
		}
		if i := j.Instances[c.key()]; i != nil && i.Child == c.Job {
			open.Attempt = i.Attempt
		}
		j.openFor(&open, g)
		out = append(out, open)
	}
	slices.SortFunc(out, func(a, b Open) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Element, b.Element),
			bytes.Compare(a.GUID[:], b.GUID[:]))
	})
	if j.ClosedAt > 0 && j.TasksAt == 0 {
		out = slices.Insert(out, 0, Open{What: "tasks", GUID: j.Closer, Since: j.ClosedAt})
	}
	return out
}

func (j *Job) openRow(g journal.GUID, r *Row) Open {
	open := Open{
		What: string(r.Kind), GUID: g, Activity: r.Activity, DAD: string(r.DAD), Element: r.Element,
		Turn: r.Turn, Attempt: r.Attempt, NextAt: r.NextAt, Held: r.Held, Input: r.Input, Topic: r.Topic,
		Since:     r.Origin,
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

// openFor names the function that something belongs to, and the function's name for it.
func (j *Job) openFor(o *Open, g journal.GUID) {
	if _, p := j.standsFor(g); p != nil {
		o.Request, o.Name = p.Request, p.Name
	}
}
