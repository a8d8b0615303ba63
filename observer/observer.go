package observer

import (
	"context"
	"time"
)

// Names of the spans (spec 5.4).
const (
	SpanStart     = "start"
	SpanLeg1      = "leg1"
	SpanLeg2      = "leg2" // a response or an answer
	SpanTrigger   = "trigger"
	SpanWakeUp    = "wakeup"
	SpanOutcome   = "outcome"
	SpanCycle     = "cycle"
	SpanInterrupt = "interrupt"
	SpanSignal    = "signal" // the delivery to a wait
	SpanStep1     = "step1"
	SpanStep2     = "step2"
	SpanStep3     = "step3"
	SpanCommit    = "commit"
	SpanPublish   = "publish"
	SpanAttempt   = "attempt"
	SpanEffect    = "effect"
)

// Subject says what a span is about. Empty fields are left out.
type Subject struct {
	Space, Job, Key, Flow string
	Activity, DAD, GUID   string
	Topic                 string
	Before, After         string // digits
	Code                  int
	Turn, Attempt         int
	By                    string // what woke a hook: signal or timer
	Child                 string // the child whose outcome this is
	// Link is the traceparent of a span in another trace that caused this one: the parent
	// of a child job, the sender of a signal.
	Link string
}

// Span is a finished piece of work with its parts as Children. A span is reported with
// all its parts or, after a crash, not at all, so that no orphan is left in a job's tree.
type Span struct {
	Name       string
	Subject    Subject
	Start, End time.Time
	Err        error
	Children   []Span
}

// Observer receives what the runtime does. Implementations must be safe for concurrent
// use and fast: they are called on the hot path.
type Observer interface {
	// Root opens the span of a job's start under the caller's span in ctx, if there is
	// one, and returns its traceparent ("" without tracing). end is called once.
	Root(ctx context.Context, s Subject) (traceparent string, end func(error))
	// Trace returns the traceparent of the caller's span in ctx, "" without one.
	Trace(ctx context.Context) string
	// Told reports finished work under the span that traceparent names, which is the
	// job's root. Without a traceparent it does nothing.
	Told(traceparent string, spans ...Span)
	// Attempt opens the span of a handler's run. The returned context lets the handler's
	// own spans nest in it. The returned function gets the outcome and the effects of the
	// run.
	Attempt(ctx context.Context, traceparent string, s Subject) (context.Context, func(err error, effects []Span))
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

// Root implements Observer.
func (Nop) Root(context.Context, Subject) (string, func(error)) { return "", func(error) {} }

// Trace implements Observer.
func (Nop) Trace(context.Context) string { return "" }

// Told implements Observer.
func (Nop) Told(string, ...Span) {}

// Attempt implements Observer.
func (Nop) Attempt(ctx context.Context, _ string, _ Subject) (context.Context, func(error, []Span)) {
	return ctx, func(error, []Span) {}
}

// Count implements Observer.
func (Nop) Count(string, int64, ...string) {}

// Observe implements Observer.
func (Nop) Observe(string, float64, ...string) {}

// Ask implements Observer.
func (Nop) Ask(Source) func() { return func() {} }
