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

// Names of the metrics (spec 5.4).
const (
	MetricTransitions  = "quipu.transitions"        // messages handled
	MetricBatch        = "quipu.batch.size"         // messages per transaction
	MetricCommit       = "quipu.commit.seconds"     // load to commit
	MetricRedelivered  = "quipu.redeliveries"       // deliveries after the first
	MetricStale        = "quipu.stale"              // stale verdicts
	MetricUnlicensed   = "quipu.unlicensed"         // acked: neither a receipt nor a dispatch row
	MetricRefused      = "quipu.refused"            // messages that are not authentic, or cannot be checked, by reason (S2)
	MetricDecidedAgain = "quipu.decided_again"      // lost test-and-sets
	MetricHot          = "quipu.hot"                // messages by outcome: decided without a load, loaded, or lost
	MetricDead         = "quipu.dead_letters"       // dead letters written
	MetricResent       = "quipu.resent"             // rows sent again by the sweeper
	MetricHandled      = "quipu.handler.attempts"   // handler runs, by topic and outcome
	MetricEffects      = "quipu.effects"            // by class and outcome
	MetricVerified     = "quipu.effects.verified"   // answers of verifiers, by mode and outcome
	MetricOutboxLag    = "quipu.outbox.lag.seconds" // age of the oldest due row
	MetricTimerLag     = "quipu.timers.lag.seconds" // how late the latest due timer is
	MetricSignals      = "quipu.signals"            // by outcome
	MetricScheduled    = "quipu.scheduled"          // jobs started by the clock, by outcome
	MetricAnother      = "quipu.another_database"   // times that the database was found to be another one (S13)
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
	// Count adds n to a counter. Attributes are key, value pairs.
	Count(metric string, n int64, attributes ...string)
	// Observe records one value of a distribution, or a gauge's new value.
	Observe(metric string, value float64, attributes ...string)
}

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
