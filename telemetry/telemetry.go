package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/quipu-journal/quipu/observer"
)

// scope is the instrumentation scope of all spans and metrics.
const scope = "github.com/quipu-journal/quipu"

// traceparent is the header of W3C Trace Context (T7).
const traceparent = "traceparent"

// Telemetry is the observer.Observer over OpenTelemetry (5.4). It is safe for
// concurrent use.
type Telemetry struct {
	spans     *sdktrace.TracerProvider // nil when tracing is off
	hold      *holder
	tracer    trace.Tracer
	errorText bool
	logger    *slog.Logger

	metrics     *sdkmetric.MeterProvider // nil when metrics are off
	meter       metric.Meter
	instruments *instruments // nil when metrics are off
	page        http.Handler // nil without Config.Prometheus
}

var _ observer.Observer = (*Telemetry)(nil)

// New opens the exporters that Config and the OTEL_ variables ask for. None of them
// connects yet; without a collector only telemetry is lost. shutdown sends what is left,
// within its context, and closes them; call it once, when the runtime has stopped. An
// error wraps ErrConfig.
func New(ctx context.Context, cfg Config) (t *Telemetry, shutdown func(context.Context) error, err error) {
	cfg = cfg.withDefaults()
	res, err := cfg.resource(ctx)
	if err != nil {
		return nil, nil, err
	}
	processor, err := cfg.spans(ctx)
	if err != nil {
		return nil, nil, err
	}
	t = &Telemetry{errorText: cfg.ErrorText, logger: cfg.Logger, tracer: noop.Tracer{}}
	if processor != nil {
		t.hold = &holder{next: processor}
		t.spans = sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithSpanProcessor(t.hold))
		t.tracer = t.spans.Tracer(scope)
	}
	if err := t.measure(ctx, cfg, res); err != nil {
		return nil, nil, errors.Join(err, t.shutdown(ctx))
	}
	return t, t.shutdown, nil
}

// measure makes the instruments, if anybody collects them.
func (t *Telemetry) measure(ctx context.Context, cfg Config, res *resource.Resource) error {
	opts := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithCardinalityLimit(MaxSeries)}
	reader, err := cfg.reader(ctx)
	if err != nil {
		return err
	}
	if reader != nil {
		opts = append(opts, sdkmetric.WithReader(reader))
	}
	if cfg.Prometheus {
		var exporter sdkmetric.Reader
		if exporter, t.page, err = prometheusPage(cfg.Logger); err != nil {
			return err
		}
		opts = append(opts, sdkmetric.WithReader(exporter))
	}
	if reader == nil && t.page == nil {
		return nil
	}
	t.metrics = sdkmetric.NewMeterProvider(opts...)
	t.meter = t.metrics.Meter(scope)
	t.instruments, err = newInstruments(t.meter)
	return err
}

func (t *Telemetry) shutdown(ctx context.Context) error {
	var errs []error
	if t.spans != nil {
		errs = append(errs, t.spans.Shutdown(ctx))
	}
	if t.metrics != nil {
		errs = append(errs, t.metrics.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// TracerProvider gives handlers tracers whose spans nest in their attempt. Spans of
// another provider join the same trace, but are not held back until the attempt has
// ended.
func (t *Telemetry) TracerProvider() trace.TracerProvider {
	if t.spans == nil {
		return noop.NewTracerProvider()
	}
	return t.spans
}

// SetGlobal sets the tracer provider, the W3C propagator and the error handler of package
// otel, for a process that has no other telemetry.
func (t *Telemetry) SetGlobal() {
	otel.SetTracerProvider(t.TracerProvider())
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		t.logger.Warn("telemetry was not delivered", "error", err)
	}))
}

// Root implements observer.Observer. With tracing off it returns the caller's own
// traceparent, so that others may trace.
func (t *Telemetry) Root(ctx context.Context, s observer.Subject) (string, func(error)) {
	if t.spans == nil {
		return inject(ctx), func(error) {}
	}
	ctx, span := t.start(ctx, observer.SpanStart, s)
	return inject(ctx), func(err error) {
		t.fail(span, err)
		span.End()
	}
}

// Trace implements observer.Observer.
func (t *Telemetry) Trace(ctx context.Context) string { return inject(ctx) }

// Told implements observer.Observer.
func (t *Telemetry) Told(parent string, spans ...observer.Span) {
	ctx, ok := t.under(context.Background(), parent)
	if !ok {
		return
	}
	for i := range spans {
		t.told(ctx, &spans[i])
	}
}

// told makes one span with its parts. It ends a span before its parts begin, so that the
// exporter gets parents first.
func (t *Telemetry) told(ctx context.Context, s *observer.Span) {
	ctx, span := t.start(ctx, s.Name, s.Subject, trace.WithTimestamp(s.Start))
	if span.IsRecording() {
		t.fail(span, s.Err)
		span.End(trace.WithTimestamp(s.End))
	}
	for i := range s.Children {
		t.told(ctx, &s.Children[i])
	}
}

// Attempt implements observer.Observer. Spans that the handler opens in the context are
// exported when the attempt has ended, after its own span. The context also has baggage:
// quipu.job (its id), quipu.activity and quipu.attempt, for the logs and spans of what the
// handler calls.
func (t *Telemetry) Attempt(ctx context.Context, parent string, s observer.Subject) (context.Context, func(error, []observer.Span)) {
	under, ok := t.under(ctx, parent)
	if !ok {
		return ctx, func(error, []observer.Span) {}
	}
	at := &held{}
	// The attempt's own span must not be held by an attempt around it.
	under, span := t.start(context.WithValue(under, heldKey{}, (*held)(nil)), observer.SpanAttempt, s)
	at.trace = span.SpanContext().TraceID()
	under = carry(under, "quipu.job", s.Job, "quipu.activity", s.Activity, keyAttempt, strconv.Itoa(s.Attempt))
	return context.WithValue(under, heldKey{}, at), func(err error, effects []observer.Span) {
		t.fail(span, err)
		if n := at.lost(); n > 0 {
			span.SetAttributes(attribute.Int(keyDropped, n))
		}
		span.End()
		for i := range effects {
			t.told(under, &effects[i])
		}
		t.hold.release(at)
	}
}

// carry adds names and values to the baggage of ctx. What baggage cannot have is left out.
func carry(ctx context.Context, pairs ...string) context.Context {
	all := baggage.FromContext(ctx)
	for i := 0; i < len(pairs); i += 2 {
		if m, err := baggage.NewMemberRaw(pairs[i], pairs[i+1]); err == nil {
			if more, err := all.SetMember(m); err == nil {
				all = more
			}
		}
	}
	return baggage.ContextWithBaggage(ctx, all)
}

func (t *Telemetry) start(ctx context.Context, kind string, s observer.Subject, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	opts = append(opts, trace.WithSpanKind(spanKind(kind)))
	if sc := remote(s.Link); sc.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: sc}))
	}
	ctx, span := t.tracer.Start(ctx, spanName(kind, s), opts...)
	if span.IsRecording() {
		span.SetAttributes(attributes(s)...)
	}
	return ctx, span
}

// under is ctx below the remote span that parent names; false when there is nothing to
// trace. Only the stored traceparent decides about a job's trace, not a span in ctx.
func (t *Telemetry) under(ctx context.Context, parent string) (context.Context, bool) {
	if t.spans == nil || parent == "" {
		return ctx, false
	}
	sc := remote(parent)
	if !sc.IsValid() {
		return ctx, false
	}
	return trace.ContextWithRemoteSpanContext(ctx, sc), true
}

// remote is the span that a traceparent names; invalid if it names none.
func remote(parent string) trace.SpanContext {
	if parent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: parent})
	return trace.SpanContextFromContext(ctx)
}

// inject is the traceparent of the span in ctx, "" without one.
func inject(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparent]
}
