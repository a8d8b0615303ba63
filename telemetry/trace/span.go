package trace

import (
	"cmp"
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// Kind is the kind of a span, as OpenTelemetry has them.
type Kind uint8

// The kinds of spans.
const (
	Internal Kind = iota
	Producer
	Consumer
	Client
)

// The parts of a tree: the first word of a span's name.
const (
	PartJob      = "job"
	PartActivity = "activity"
	PartDispatch = "dispatch"
	PartStart    = "start"    // the trigger's message
	PartResponse = "response" // of a handler, or the answer of an activity that sends no request
	PartWakeUp   = "wakeup"
	PartOutcome  = "outcome" // of a child
	PartCycle    = "cycle"
	PartLate     = "late" // a stale message
	PartStep     = "step"
	PartAttempt  = "attempt"
	PartQueued   = "queued"
	PartRun      = "run"
	PartEffect   = "effect"
	PartBackoff  = "backoff"
	PartWait     = "wait"
	PartChild    = "child"
	PartParked   = "parked"
	PartSend     = "send" // of a signal or an interrupt
)

// Span is one span of a job's tree.
type Span struct {
	ID, Parent SpanID
	Part       string // one of the parts, or the kind of an entry
	About      string // the activity, the flow or the effect; may be ""
	Kind       Kind
	Start, End int64 // µs since 1970, by the database's clock; End 0: it is still open
	Attributes []Attribute
	Links      []Link
	Failure    *journal.Failure // nil: none
	Code       int              // of a failure; 0: it has none
}

// Name is the part and what it is about. It has few values however many jobs run.
func (s *Span) Name() string {
	if s.About == "" {
		return s.Part
	}
	return s.Part + " " + s.About
}

// Attribute is a text, or a number if Text is "".
type Attribute struct {
	Key    string
	Text   string
	Number int64
}

// Link is a span of another job that has to do with this one.
type Link struct {
	Job   journal.JobID
	Trace TraceID // of the job
	Span  SpanID
	Why   string // parent, child, resumes, resumed, interrupts
}

// Tree is what a journal says of its job. Parents come before their children.
type Tree struct {
	Job     journal.JobID
	Context Context
	Space   string
	Key     string
	State   journal.JobState
	Spans   []Span
}

// Ended returns the spans that have ended. They are the same in every later tree of the job.
func (t *Tree) Ended() []Span {
	return slices.DeleteFunc(slices.Clone(t.Spans), func(s Span) bool { return s.End == 0 })
}

// Depths returns the depth of each span of the tree, 0 for the job, and sorts the spans so that
// each stands behind its parent, and children in the order of time.
func (t *Tree) Depths() []int {
	children := map[SpanID][]int{}
	for i := range t.Spans {
		children[t.Spans[i].Parent] = append(children[t.Spans[i].Parent], i)
	}
	sorted := make([]Span, 0, len(t.Spans))
	depths := make([]int, 0, len(t.Spans))
	var walk func(parent SpanID, depth int)
	walk = func(parent SpanID, depth int) {
		below := children[parent]
		slices.SortStableFunc(below, func(x, y int) int { return cmp.Compare(t.Spans[x].Start, t.Spans[y].Start) })
		for _, i := range below {
			sorted, depths = append(sorted, t.Spans[i]), append(depths, depth)
			walk(t.Spans[i].ID, depth+1)
		}
	}
	walk(t.Context.Caller, 0)
	t.Spans = sorted
	return depths
}
