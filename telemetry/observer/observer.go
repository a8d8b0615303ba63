package observer

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Names of the spans that exist live only: no entry tells of them (O2).
const (
	SpanCommit  = "commit"
	SpanPublish = "publish"
	SpanSignal  = "signal" // the delivery to a wait
	SpanEffect  = "effect" // of Attempt
)

// Subject says what a span is about. Empty fields are left out.
type Subject struct {
	Space, Job, Key, Flow string
	Activity, DAD, GUID   string
	Topic                 string
	Turn, Attempt         int
	// Link is the traceparent of a span in another trace that caused this one: the sender of a
	// signal.
	Link string
}

// Span is a finished piece of work.
type Span struct {
	Name       string
	Subject    Subject
	Start, End time.Time
	Err        error
}

// Message names a message of a job, under whose span something happened (O1).
type Message struct {
	Job         journal.JobID
	Traceparent string // as it is stored with the job
	GUID        journal.GUID
}

// Observer receives what the runtime does. Implementations must be safe for concurrent
// use and fast: they are called on the hot path.
type Observer interface {
	// Trace returns the traceparent of the caller's span in ctx, "" without one.
	Trace(ctx context.Context) string
	// Under returns the traceparent of one turn of a request, for its handler's own spans, ""
	// if nothing is traced. m names the request.
	Under(m Message, turn int) string
	// Told reports finished work under the span of a message.
	Told(m Message, spans ...Span)
	// Attempt makes the context of a handler's run; traceparent is that of Under. The returned
	// function gets the outcome and the effects of the run.
	Attempt(ctx context.Context, traceparent string, s Subject) (context.Context, func(err error, effects []Span))
	// Traces says whether the trees of ended jobs are taken here (O2).
	Traces() bool
	// Sampled says whether the tree of a job is taken, by what is stored with it.
	Sampled(job journal.JobID, traceparent string) bool
	// Trees takes what has ended of the trees, and returns when it has been delivered. It may
	// be called for a tree again.
	Trees(ctx context.Context, trees ...*view.Tree) error
	// Count adds n to a counter of Metrics. Attributes are key, value pairs. An unknown metric
	// and an attribute that it does not take are dropped.
	Count(metric string, n int64, attributes ...string)
	// Observe records one value of a distribution. Attributes are as in Count.
	Observe(metric string, value float64, attributes ...string)
	// Ask has the source asked whenever somebody collects the metrics, at most once in some
	// seconds. No call of it is under way when forget has returned.
	Ask(source Source) (forget func())
}

// Reading is a value of a gauge or a total. Attributes are key, value pairs.
type Reading struct {
	Metric     string
	Value      float64
	Attributes []string
}

// Source reads gauges and totals. Beside an error it returns what it could read. ctx bounds it.
type Source func(ctx context.Context) ([]Reading, error)

// Nop is the Observer that drops everything.
type Nop struct{}

var _ Observer = Nop{}

// Trace implements Observer.
func (Nop) Trace(context.Context) string { return "" }

// Under implements Observer. It passes on what the starter had, so that others may trace.
func (Nop) Under(m Message, _ int) string { return m.Traceparent }

// Told implements Observer.
func (Nop) Told(Message, ...Span) {}

// Attempt implements Observer.
func (Nop) Attempt(ctx context.Context, _ string, _ Subject) (context.Context, func(error, []Span)) {
	return ctx, func(error, []Span) {}
}

// Traces implements Observer.
func (Nop) Traces() bool { return false }

// Sampled implements Observer.
func (Nop) Sampled(journal.JobID, string) bool { return false }

// Trees implements Observer.
func (Nop) Trees(context.Context, ...*view.Tree) error { return nil }

// Count implements Observer.
func (Nop) Count(string, int64, ...string) {}

// Observe implements Observer.
func (Nop) Observe(string, float64, ...string) {}

// Ask implements Observer.
func (Nop) Ask(Source) func() { return func() {} }
