package spans

import (
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Builder makes the tree of one job from its entries.
type Builder struct {
	tree  view.Tree
	job   int  // the job's span, -1 before the first entry
	tasks bool // the completion tasks are done: no message leaves anything open any more

	places   map[place]*activity
	requests map[journal.GUID]*request
	order    []journal.GUID         // of the requests
	attempts map[view.SpanID]int64  // that have begun, and when
	sent     map[journal.GUID]int64 // when a Leg1 was sent
	messages map[journal.GUID]int   // spans of messages
	cycles   map[journal.GUID]bool
	pauses   map[journal.GUID]int  // spans of the pauses of functions
	children map[journal.JobID]int // spans of awaited children
	effects  map[effectKey]running // that have not ended
}

// place is an instance.
type place struct{ activity, dad string }

// activity is the present pass of an instance.
type activity struct {
	span  int
	leg1  journal.GUID
	wait  int // its open wait, or -1
	waits int // how many there were
	child int // its open child, or -1
	// open says that something else ends the instance than its Leg1.
	open bool
}

// request is a request that was sent.
type request struct {
	place
	element int // -1: none
	topic   string
	turn    int // of the present attempt
	attempt int
	span    int   // of the present attempt, or -1
	due     int64 // since when it is due, if it is not yet
	backoff int   // the open pause before the next attempt, or -1
	parked  int   // the open wait for a person, or -1
}

type effectKey struct {
	chain journal.GUID
	key   journal.Digest
}

// New makes the Builder of a job.
func New() *Builder {
	return &Builder{
		job:    -1,
		places: map[place]*activity{}, requests: map[journal.GUID]*request{}, sent: map[journal.GUID]int64{},
		attempts: map[view.SpanID]int64{},
		messages: map[journal.GUID]int{}, cycles: map[journal.GUID]bool{}, pauses: map[journal.GUID]int{},
		children: map[journal.JobID]int{}, effects: map[effectKey]running{},
	}
}

// Add takes the next entry: first those of the main chain in order, then those of the effect
// chains. Entries before the job's first one are left out.
func (b *Builder) Add(e *journal.Entry) {
	switch {
	case e.Kind == journal.KindCreated && b.job < 0:
		b.created(e)
	case b.job < 0:
		return
	case !e.Chain.IsZero():
		b.effect(e)
		return
	}
	b.entry(e)
}

// Tree returns the spans, parents first. traced returns the traceparent that is stored with another
// job to which one is linked, "" if there is none; nil: no job has one.
func (b *Builder) Tree(traced func(journal.JobID) string) *view.Tree {
	for i := range b.tree.Spans {
		for n := range b.tree.Spans[i].Links {
			l := &b.tree.Spans[i].Links[n]
			if !l.Trace.IsZero() {
				continue
			}
			stored := ""
			if traced != nil {
				stored = traced(l.Job)
			}
			l.Trace = Of(l.Job, stored).Trace
		}
	}
	return &b.tree
}

// begin adds a span that is open, and returns its index.
func (b *Builder) begin(s view.Span) int {
	b.tree.Spans = append(b.tree.Spans, s)
	return len(b.tree.Spans) - 1
}

// instant adds a span of a moment.
func (b *Builder) instant(s view.Span, at int64) int {
	s.Start, s.End = at, at
	return b.begin(s)
}

// end ends a span, if it is open.
func (b *Builder) end(i int, at int64, attributes ...view.Attribute) {
	if i < 0 || b.tree.Spans[i].End != 0 {
		return
	}
	s := &b.tree.Spans[i]
	s.End = max(at, s.Start)
	s.Attributes = append(s.Attributes, attributes...)
}

func (b *Builder) id(i int) view.SpanID {
	if i < 0 {
		i = b.job
	}
	return b.tree.Spans[i].ID
}

// created begins the job.
func (b *Builder) created(e *journal.Entry) {
	b.tree = view.Tree{Job: e.Job, Context: Of(e.Job, e.Trace), Space: e.Space, Key: e.Key, State: journal.JobOpen}
	s := view.Span{
		ID: OfJob(e.Job), Parent: b.tree.Context.Caller, Part: PartJob, Kind: view.Consumer, Start: e.Time,
		Attributes: texts("quipu.space", e.Space, "quipu.job", e.Job.String(), "quipu.key", e.Key),
	}
	s.Attributes = append(s.Attributes, numbers("quipu.generation", e.Generation)...)
	if e.Flow != nil {
		s.About = e.Flow.Name
		s.Attributes = append(s.Attributes, texts("quipu.flow", e.Flow.Name, "quipu.version", e.Flow.Version)...)
	}
	if p := e.Parent; p != nil {
		s.Links = append(s.Links, view.Link{Job: p.Job, Span: OfActivity(p.Job, p.Activity, p.DAD, 0), Why: "parent"})
	}
	if f := e.From; f != nil {
		s.Links = append(s.Links, link(f.Job, "resumes"))
	}
	b.job = b.begin(s)
	a := b.activity(place{e.Activity, e.DAD}, e.Time, e.GUID)
	if len(e.Dispatched) > 0 && e.Dispatched[0].At > e.Time {
		b.wait(a, e.Time, texts("quipu.by", string(journal.ByTimer))...)
	}
}

// link names the span of another job.
func link(job journal.JobID, why string) view.Link {
	return view.Link{Job: job, Span: OfJob(job), Why: why}
}

// activity begins the span of an instance, once.
func (b *Builder) activity(at place, since int64, leg1 journal.GUID) *activity {
	if a := b.places[at]; a != nil {
		return a
	}
	return b.pass(at, since, leg1, 0)
}

// pass begins a pass of an instance.
func (b *Builder) pass(at place, since int64, leg1 journal.GUID, pass int) *activity {
	s := view.Span{
		ID: OfActivity(b.tree.Job, at.activity, at.dad, pass), Parent: b.id(b.job), Part: PartActivity,
		About: at.activity, Start: since,
		Attributes: texts("quipu.job", b.tree.Job.String(), "quipu.activity", at.activity, "quipu.dad", at.dad),
	}
	s.Attributes = append(s.Attributes, numbers("quipu.pass", int64(pass))...)
	a := &activity{span: b.begin(s), leg1: leg1, wait: -1, child: -1}
	b.places[at] = a
	return a
}

// parent is the activity's span of a place, or the job's.
func (b *Builder) parent(at place) view.SpanID {
	if a := b.places[at]; a != nil {
		return b.id(a.span)
	}
	return b.id(b.job)
}

// wait begins a wait of an activity.
func (b *Builder) wait(a *activity, since int64, attributes ...view.Attribute) {
	if a.wait >= 0 && b.tree.Spans[a.wait].End == 0 { // a signal, and the timer that bounds it
		s := &b.tree.Spans[a.wait]
		s.Attributes = append(s.Attributes, attributes...)
		return
	}
	of := b.tree.Spans[a.span]
	a.wait = b.begin(view.Span{
		ID: span("wait", of.ID[:], []byte{byte(a.waits >> 8), byte(a.waits)}), Parent: of.ID,
		Part: PartWait, About: of.About, Start: since, Attributes: attributes,
	})
	a.waits++
	a.open = true
}

// texts are the attributes of pairs of keys and texts that are not empty.
func texts(pairs ...string) []view.Attribute {
	out := make([]view.Attribute, 0, len(pairs)/2+2)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, view.Attribute{Key: pairs[i], Text: pairs[i+1]})
		}
	}
	return out
}

// numbers is the attribute of a number that is not 0.
func numbers(key string, n int64) []view.Attribute {
	if n == 0 {
		return nil
	}
	return []view.Attribute{{Key: key, Number: n}}
}
