package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/quipu-journal/quipu/internal/inspect/spans"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// scope is the instrumentation scope of all spans and metrics.
const scope = "github.com/quipu-journal/quipu"

// traceparent is the header of W3C Trace Context (T7).
const traceparent = "traceparent"

// Telemetry is the observer.Observer over OpenTelemetry (5.4). It is safe for
// concurrent use.
type Telemetry struct {
	exporter  sdktrace.SpanExporter    // nil when tracing is off
	spans     *sdktrace.TracerProvider // of handlers, and of what exists live only
	sampler   sdktrace.Sampler
	live      bool
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
	t = &Telemetry{errorText: cfg.ErrorText, logger: cfg.Logger, tracer: noop.Tracer{}}
	if t.sampler, err = cfg.sampler(); err != nil {
		return nil, nil, err
	}
	if t.exporter, err = cfg.exporter(ctx); err != nil {
		return nil, nil, err
	}
	if t.exporter != nil {
		t.spans = sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithSampler(t.sampler),
			sdktrace.WithSpanProcessor(&holder{next: sdktrace.NewBatchSpanProcessor(t.exporter)}))
		t.tracer, t.live = t.spans.Tracer(scope), cfg.Traces == TracesLive
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

// TracerProvider gives handlers tracers whose spans nest in their attempt. Those of another
// provider do so, too.
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
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{},
		propagation.Baggage{}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		t.logger.Warn("telemetry was not delivered", "error", err)
	}))
}

// Trace implements observer.Observer.
func (t *Telemetry) Trace(ctx context.Context) string { return inject(ctx) }

// Under implements observer.Observer. With tracing off it passes on what the starter had, so that
// others may trace.
func (t *Telemetry) Under(m observer.Message, turn int) string {
	if t.exporter == nil {
		return m.Traceparent
	}
	c := spans.Of(m.Job, m.Traceparent)
	return c.Traceparent(spans.OfAttempt(m.GUID, turn), byte(t.flags(c)))
}

// Told implements observer.Observer. It makes spans only if Config.Traces is TracesLive.
func (t *Telemetry) Told(m observer.Message, told ...observer.Span) {
	if !t.live {
		return
	}
	c := spans.Of(m.Job, m.Traceparent)
	ctx := trace.ContextWithRemoteSpanContext(context.Background(),
		remote(c.Traceparent(spans.OfMessage(m.GUID), byte(t.flags(c)))))
	for i := range told {
		s := &told[i]
		opts := []trace.SpanStartOption{trace.WithSpanKind(spanKind(s.Name)), trace.WithTimestamp(s.Start)}
		if sc := remote(s.Subject.Link); sc.IsValid() {
			opts = append(opts, trace.WithLinks(trace.Link{SpanContext: sc}))
		}
		_, span := t.tracer.Start(ctx, spanName(s.Name, s.Subject), opts...)
		if span.IsRecording() {
			span.SetAttributes(attributes(s.Subject)...)
			t.fail(span, s.Err)
			span.End(trace.WithTimestamp(s.End))
		}
	}
}

// Attempt implements observer.Observer. Spans that the handler opens in the context nest in the
// attempt's span, which the job's tree has, whatever becomes of this process. The context also has
// baggage: quipu.job (its id), quipu.activity and quipu.attempt, for the logs and spans of what
// the handler calls.
func (t *Telemetry) Attempt(
	ctx context.Context, traceparent string, s observer.Subject,
) (context.Context, func(error, []observer.Span)) {
	nothing := func(error, []observer.Span) {}
	sc := remote(traceparent)
	if t.exporter == nil || !sc.IsValid() {
		return ctx, nothing
	}
	ctx = trace.ContextWithRemoteSpanContext(ctx, sc)
	return carry(ctx, "quipu.job", s.Job, "quipu.activity", s.Activity, keyAttempt, strconv.Itoa(s.Attempt)), nothing
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
