package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Job is the input of an explanation.
type Job struct {
	// View is required.
	View *store.JobView
	// Flow is the job's version of its flow. If it cannot be read, use nil: policies,
	// joins and the graph are then left out.
	Flow *flow.Flow
	// Now is the time of a clock near the database's.
	Now collation.Micros
	// Last is the entry that closed or quarantined the job; nil if it was not looked up.
	Last *journal.Entry
	// Child is the child whose failure the function that failed the job passed on; zero if there
	// is none, or if it was not looked up (PassedOn).
	Child journal.JobID
	// Cut are the effects that keep requests from their next run (store.WaitsEffect).
	Cut []store.Awaited
	// Addresses puts the address of each instance into the sentences, in place of its pass.
	Addresses bool
	// Find looks up another job, such as a child, and returns nil if there is none.
	// Without Find nothing is looked up.
	Find func(journal.JobID) *store.JobSummary
	// Processes are the living ones. nil means that they were not looked up, which is not
	// the same as none.
	Processes []store.ProcessView
	// Elsewhere reports whether a worker that is none of Processes takes the requests of a topic, and
	// whether that could be seen. nil: it could not.
	Elsewhere func(topic string) (is, seen bool)
	// Wrong is what is wrong with the space, of which the job is told what concerns it.
	Wrong []health.Finding
	// Zone is the time zone in sentences; nil means UTC.
	Zone *time.Location
}

// Kind says what a reason is about.
type Kind string

// The kinds of reasons, the most urgent first. Why returns reasons in this order.
const (
	KindQuarantined Kind = "quarantined" // its stored state breaks a law (J1)
	KindExpired     Kind = "expired"     // only its tombstone is left
	KindPerson      Kind = "person"      // a dead letter waits for a person (E10)
	KindNobody      Kind = "nobody"      // no living process serves it
	KindSpace       Kind = "space"       // something is wrong with the space, and nothing goes on
	KindBusy        Kind = "busy"        // an engine has been deciding on its message for long
	KindTasks       Kind = "tasks"       // the job is closed, its completion tasks are open
	KindClosed      Kind = "closed"      // the job has ended
	KindInterrupt   Kind = "interrupt"   // an interrupt is on its way to the job
	KindUnknown     Kind = "unknown"     // open, and no row says why
	KindUnsent      Kind = "unsent"      // due, and not yet published
	KindWorker      Kind = "worker"      // sent to a worker
	KindLease       Kind = "lease"       // a worker holds it
	KindEffect      Kind = "effect"      // its effect was cut off, and may still be under way
	KindEach        Kind = "each"        // elements of a list
	KindRetry       Kind = "retry"       // an attempt failed, the next will come
	KindEngine      Kind = "engine"      // sent to the engines
	KindSuspended   Kind = "suspended"   // its handler is suspended
	KindChild       Kind = "child"       // a job that an await started
	KindSignal      Kind = "signal"
	KindRace        Kind = "race" // a signal or a timer, whichever comes first
	KindTimer       Kind = "timer"
	KindJoin        Kind = "join" // arrivals are missing
)

var rank = []Kind{
	KindQuarantined, KindExpired, KindPerson, KindSpace, KindNobody, KindBusy, KindTasks, KindClosed, KindInterrupt,
	KindUnknown, KindUnsent, KindWorker,
	KindLease, KindEffect,
	KindEach, KindRetry, KindEngine, KindSuspended, KindChild, KindSignal, KindRace, KindTimer, KindJoin,
}

// reason is one thing that a job waits for, or how it ended.
type reason struct {
	Kind     Kind
	Activity string // with DAD the instance; "": the job as a whole
	DAD      collation.DAD
	Text     string
	Due      collation.Micros // Never: it does not go on by itself
	Dead     int64
	remedies []view.Remedy
	notes    []string
}

// view is the reason as others see it.
func (r *reason) view() view.Reason {
	out := view.Reason{
		Kind: string(r.Kind), Activity: r.Activity, Address: string(r.DAD), Text: r.Text, DeadLetter: r.Dead,
		Remedies: r.remedies, Notes: r.notes,
	}
	if r.Due != collation.Never {
		out.Due = time.UnixMicro(int64(r.Due)).UTC()
	}
	return out
}

// Why says what the job waits for and what happens next, or how it ended. Reasons that
// need a person come first. There is at least one.
func Why(j *Job) []view.Reason {
	e := &explainer{Job: j, v: j.View}
	e.gather()
	e.arrange()
	if !e.ended() {
		for _, s := range e.spots {
			e.explain(s)
		}
		e.space()
		e.nobody()
		e.busy()
	}
	if e.v.State != journal.JobQuarantined {
		e.letters()
	}
	if len(e.reasons) == 0 {
		e.add(nil, KindUnknown, "the job is open and no row says what it waits for: compare its tables with its journal").
			do("", "journal-verify --job "+e.v.ID.String())
	}
	slices.SortStableFunc(e.reasons, func(a, b reason) int {
		return cmp.Compare(slices.Index(rank, a.Kind), slices.Index(rank, b.Kind))
	})
	out := make([]view.Reason, len(e.reasons))
	for i := range e.reasons {
		out[i] = e.reasons[i].view()
	}
	return out
}

// explainer collects the reasons of one job.
type explainer struct {
	*Job
	v       *store.JobView
	spots   []*spot // in the order of the graph
	by      map[collation.InstanceKey]*spot
	dead    map[journal.GUID]*store.DeadView // open dead letters by their row
	told    map[int64]bool                   // dead letters that a reason already names
	rows    map[journal.GUID]*collation.Row  // all rows, starts of children included
	waits   map[journal.GUID]*collation.Wait
	reasons []reason
}

// spot is everything that is open at one instance.
type spot struct {
	collation.InstanceKey
	place    string         // its pass or its address, where the activity has several
	act      *flow.Activity // nil without a flow
	inst     *collation.Instance
	requests []*collation.Row // and answers to them
	timer    *collation.Row   // a wake-up by the clock, due or not
	bound    *collation.Row   // the answer for `within`
	rows     []*collation.Row // all others: Leg1, answer, wake-up, outcome, cycle, start, interrupt
	order    *collation.Row   // the start of its child
	wait     *collation.Wait
	alarms   []*collation.Row // wakes of durable functions: timers, timeouts and others
}

// add appends a reason. The result may be changed until the next add.
func (e *explainer) add(s *spot, kind Kind, sentence ...string) *reason {
	r := reason{Kind: kind, Text: strings.Join(sentence, "")}
	if s != nil {
		r.Activity, r.DAD = s.Activity, s.DAD
	}
	e.reasons = append(e.reasons, r)
	return &e.reasons[len(e.reasons)-1]
}

// gather finds the rows and the waits of each instance.
func (e *explainer) gather() {
	e.by = map[collation.InstanceKey]*spot{}
	e.dead, e.told = map[journal.GUID]*store.DeadView{}, map[int64]bool{}
	e.rows, e.waits = map[journal.GUID]*collation.Row{}, map[journal.GUID]*collation.Wait{}
	for i := range e.v.Dead {
		if d := &e.v.Dead[i]; d.State == "open" && !d.Letter.Row.IsZero() {
			e.dead[d.Letter.Row] = d
		}
	}
	for i := range e.v.Instances {
		in := &e.v.Instances[i]
		e.at(in.Key).inst = &in.Instance
	}
	awaits := map[journal.JobID]*spot{}
	for _, s := range e.by {
		if !s.inst.Child.IsZero() {
			awaits[s.inst.Child] = s
		}
	}
	for i := range e.v.Rows {
		r := &e.v.Rows[i]
		e.rows[r.GUID] = r
		if s := awaits[r.Job]; s != nil && r.Job != e.v.ID {
			s.order = r
		} else if r.Job == e.v.ID {
			e.at(collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}).put(r)
		}
	}
	for i := range e.v.Waits {
		w := &e.v.Waits[i]
		e.waits[w.GUID] = w
		if s := e.at(collation.InstanceKey{Activity: w.Activity, DAD: w.DAD}); w.Request.IsZero() {
			s.wait = w
		}
	}
}

// arrange puts the instances into the order in which they are told of, and says which is which. It costs
// most where a loop has many passes.
func (e *explainer) arrange() {
	e.place()
	slices.SortFunc(e.spots, func(a, b *spot) int {
		return cmp.Or(cmp.Compare(a.index(), b.index()), cmp.Compare(a.Activity, b.Activity), a.DAD.Compare(b.DAD))
	})
}

// place says which of several instances of its activity each spot is: by the pass, or where that
// does not tell them apart (in a loop within a loop) by the address.
func (e *explainer) place() {
	type pass struct {
		activity string
		number   int
	}
	alike := map[pass]int{}
	for _, s := range e.spots {
		alike[pass{s.Activity, s.DAD.Pass()}]++
	}
	for _, s := range e.spots {
		switch n := s.DAD.Pass(); {
		case e.Addresses || alike[pass{s.Activity, n}] > 1:
			s.place = " at " + string(s.DAD)
		case n > 1:
			s.place = fmt.Sprintf(" (pass %d)", n)
		}
	}
}

// at is the spot of the key; it makes a new one if needed.
func (e *explainer) at(key collation.InstanceKey) *spot {
	s := e.by[key]
	if s == nil {
		s = &spot{InstanceKey: key, inst: &collation.Instance{}}
		if e.Flow != nil {
			s.act, _ = e.Flow.Activity(key.Activity)
		}
		e.by[key] = s
		e.spots = append(e.spots, s)
	}
	return s
}

// put files a row of this job by its kind.
func (s *spot) put(r *collation.Row) {
	switch by, class := nature(r); {
	case r.Kind == journal.MessageRequest, r.Kind == journal.MessageAnswer && r.Turn > 0:
		s.requests = append(s.requests, r)
	case wakes(r):
		s.alarms = append(s.alarms, r)
	case r.Kind == journal.MessageWakeUp && by == journal.ByTimer:
		s.timer = r
	case r.Kind == journal.MessageAnswer && class == "within":
		s.bound = r
	default:
		s.rows = append(s.rows, r)
	}
}

func (s *spot) index() int {
	if s.act == nil {
		return -1
	}
	return s.act.Index
}
