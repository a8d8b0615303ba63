package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/quipu-journal/quipu/observer"
	"github.com/quipu-journal/quipu/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process is one process of a space; all processes export to the same place.
func process(t *testing.T, out *tracetest.InMemoryExporter, cfg telemetry.Config) *telemetry.Telemetry {
	t.Helper()
	cfg.SpanProcessor = sdktrace.NewSimpleSpanProcessor(keep{out})
	cfg.Getenv = func(string) string { return "" }
	tel, _, err := telemetry.New(t.Context(), cfg)
	require.NoError(t, err)
	return tel
}

// keep is an exporter whose spans survive a shutdown.
type keep struct{ *tracetest.InMemoryExporter }

func (keep) Shutdown(context.Context) error { return nil }

// requireTree checks that the spans are one tree: one trace, one root, and the parent of
// every other span was exported before it.
func requireTree(t *testing.T, spans tracetest.SpanStubs, callers trace.SpanContext) {
	t.Helper()
	require.NotEmpty(t, spans)
	seen := map[trace.SpanID]bool{}
	roots := 0
	for _, s := range spans {
		require.Equal(t, spans[0].SpanContext.TraceID(), s.SpanContext.TraceID(), s.Name)
		if s.Parent.SpanID() == callers.SpanID() {
			roots++
		} else {
			require.True(t, seen[s.Parent.SpanID()], "%s has no exported parent", s.Name)
		}
		seen[s.SpanContext.SpanID()] = true
	}
	require.Equal(t, 1, roots)
	require.Len(t, seen, len(spans))
}

func names(spans tracetest.SpanStubs) []string {
	out := make([]string, len(spans))
	for i, s := range spans {
		out[i] = s.Name
	}
	return out
}

func find(t *testing.T, spans tracetest.SpanStubs, name string) tracetest.SpanStub {
	t.Helper()
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	require.Failf(t, "no such span", "%s is not among %v", name, names(spans))
	return tracetest.SpanStub{}
}

func step(name, activity string, at time.Time, children ...observer.Span) observer.Span {
	return observer.Span{
		Name: name, Subject: observer.Subject{Job: "j", Activity: activity, DAD: ",0,0"},
		Start: at, End: at.Add(time.Millisecond), Children: children,
	}
}

// The steps of a job run in three processes; one is killed in an attempt whose handler
// had already ended spans of its own (5.4).
func TestOneJobIsOneTreeAcrossACrash(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	starter, engine := process(t, out, telemetry.Config{}), process(t, out, telemetry.Config{})
	killed, second := process(t, out, telemetry.Config{}), process(t, out, telemetry.Config{})

	root, end := starter.Root(t.Context(), observer.Subject{Space: "shop", Key: "order-1", Flow: "order"})
	require.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`, root)
	end(nil)
	began := time.Now().Add(-time.Minute)
	engine.Told(root, step(observer.SpanTrigger, "start", began,
		step(observer.SpanStep1, "start", began), step(observer.SpanCommit, "", began)))
	engine.Told(root, step(observer.SpanLeg1, "charge", began, step(observer.SpanPublish, "", began)))

	before := len(out.GetSpans())
	ctx, _ := killed.Attempt(t.Context(), root, observer.Subject{Activity: "charge", Turn: 1})
	_, own := killed.TracerProvider().Tracer("shop").Start(ctx, "prepare")
	own.End()
	require.Len(t, out.GetSpans(), before, "nothing of an attempt that never ends is exported")

	mine, err := baggage.Parse("tenant=7")
	require.NoError(t, err)
	ctx, done := second.Attempt(baggage.ContextWithBaggage(t.Context(), mine), root, observer.Subject{Job: "j", Activity: "charge", Turn: 1, Attempt: 2})
	for name, value := range map[string]string{"tenant": "7", "quipu.job": "j", "quipu.activity": "charge", "quipu.attempt": "2"} {
		require.Equal(t, value, baggage.FromContext(ctx).Member(name).Value())
	}
	outerCtx, outer := second.TracerProvider().Tracer("shop").Start(ctx, "outer")
	_, inner := second.TracerProvider().Tracer("shop").Start(outerCtx, "inner")
	inner.End()
	outer.End()
	done(nil, []observer.Span{step(observer.SpanEffect, "charge", began)})
	engine.Told(root, step(observer.SpanLeg2, "charge", began, step(observer.SpanStep2, "charge", began)))

	spans := out.GetSpans()
	requireTree(t, spans, trace.SpanContext{})
	require.Equal(t, []string{
		"start order", "trigger start", "step1 start", "commit", "leg1 charge", "publish",
		"attempt charge", "effect charge", "outer", "inner", "leg2 charge", "step2 charge",
	}, names(spans))
	attempt := find(t, spans, "attempt charge").SpanContext.SpanID()
	require.Equal(t, attempt, find(t, spans, "effect charge").Parent.SpanID())
	require.Equal(t, attempt, find(t, spans, "outer").Parent.SpanID())
	leg1 := find(t, spans, "leg1 charge")
	require.True(t, leg1.StartTime.Equal(began) && leg1.EndTime.Equal(began.Add(time.Millisecond)))
}

// A job that is started within a caller's trace is part of it.
func TestCallersTraceIsHonoured(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	tel := process(t, out, telemetry.Config{})
	remote := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true,
	})
	root, end := tel.Root(trace.ContextWithRemoteSpanContext(t.Context(), remote), observer.Subject{Flow: "order"})
	end(nil)
	tel.Told(root, step(observer.SpanLeg1, "charge", time.Now()))
	spans := out.GetSpans()
	requireTree(t, spans, remote)
	require.Equal(t, remote.TraceID(), spans[0].SpanContext.TraceID())
}

// A child job has its own trace, linked to its parent's (5.4).
func TestChildIsLinkedToItsParent(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	tel := process(t, out, telemetry.Config{})
	parent, end := tel.Root(t.Context(), observer.Subject{Flow: "order"})
	end(nil)
	for _, link := range []string{parent, "", "nonsense"} {
		child, end := tel.Root(t.Context(), observer.Subject{Flow: "invoice", Link: link})
		end(nil)
		require.NotEqual(t, parent[:36], child[:36], "another trace")
	}
	spans := out.GetSpans()
	require.Len(t, spans, 4)
	require.Len(t, spans[1].Links, 1)
	require.Equal(t, spans[0].SpanContext.SpanID(), spans[1].Links[0].SpanContext.SpanID())
	require.Equal(t, spans[0].SpanContext.TraceID(), spans[1].Links[0].SpanContext.TraceID())
	require.Empty(t, spans[2].Links)
	require.Empty(t, spans[3].Links)
	require.Equal(t, parent[:36], tel.Trace(trace.ContextWithRemoteSpanContext(t.Context(), spans[0].SpanContext))[:36])
	require.Empty(t, tel.Trace(t.Context()))
}

// A trace that the caller does not sample is not sampled here, and its traceparent tells
// others.
func TestUnsampledStaysUnsampled(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	tel := process(t, out, telemetry.Config{})
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Remote: true})
	root, end := tel.Root(trace.ContextWithRemoteSpanContext(t.Context(), remote), observer.Subject{})
	require.True(t, strings.HasSuffix(root, "-00"), root)
	end(nil)
	tel.Told(root, step(observer.SpanLeg1, "charge", time.Now(), step(observer.SpanCommit, "", time.Now())))
	ctx, done := tel.Attempt(t.Context(), root, observer.Subject{})
	require.False(t, trace.SpanContextFromContext(ctx).IsSampled())
	done(nil, nil)
	require.Empty(t, out.GetSpans())
}

func TestAttributesAndStatusHoldNoPayload(t *testing.T) {
	t.Parallel()
	subject := observer.Subject{
		Space: "shop", Job: "j", Key: strings.Repeat("é", telemetry.MaxText), Flow: "order", Activity: "charge", DAD: ",0,0",
		GUID: "g", Topic: "payments.charge", Before: "001100000000000", After: "201100000000001", Code: 402, Turn: 2, Attempt: 1,
		By: "signal", Child: "c",
	}
	cause := fmt.Errorf("charge: %w", &declined{card: "4111"})
	for _, text := range []bool{false, true} {
		out := tracetest.NewInMemoryExporter()
		tel := process(t, out, telemetry.Config{ErrorText: text})
		root, end := tel.Root(t.Context(), observer.Subject{})
		end(nil)
		_, done := tel.Attempt(t.Context(), root, subject)
		done(cause, nil)
		span := out.GetSpans()[1]
		attributes := attribute.NewSet(span.Attributes...)
		require.Equal(t, 16, attributes.Len(), "%v", span.Attributes)
		for key, want := range map[attribute.Key]attribute.Value{
			"quipu.space": attribute.StringValue("shop"), "quipu.ledger.before": attribute.StringValue("001100000000000"),
			"quipu.ledger.after": attribute.StringValue("201100000000001"), "quipu.code": attribute.IntValue(402),
			"quipu.turn": attribute.IntValue(2), "quipu.attempt": attribute.IntValue(1), "quipu.dad": attribute.StringValue(",0,0"),
			"quipu.by": attribute.StringValue("signal"), "quipu.child": attribute.StringValue("c"),
			"error.type": attribute.StringValue("*telemetry_test.declined"),
		} {
			got, ok := attributes.Value(key)
			require.True(t, ok, key)
			require.Equal(t, want, got, key)
		}
		key, _ := attributes.Value("quipu.key")
		require.Len(t, key.AsString(), telemetry.MaxText)
		require.Equal(t, codes.Error, span.Status.Code)
		require.Equal(t, text, strings.Contains(span.Status.Description, "4111"), span.Status.Description)
		require.Empty(t, span.Events)
	}
}

type declined struct{ card string }

func (d *declined) Error() string { return "card " + d.card + " was declined" }

// Errors of contexts have names by which a dashboard can group.
func TestErrorTypes(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	tel := process(t, out, telemetry.Config{})
	for _, err := range []error{context.DeadlineExceeded, fmt.Errorf("x: %w", context.Canceled), errors.New("x")} {
		_, end := tel.Root(t.Context(), observer.Subject{})
		end(err)
	}
	var got []string
	for _, s := range out.GetSpans() {
		got = append(got, s.Status.Description)
	}
	require.Equal(t, []string{"timeout", "canceled", "*errors.errorString"}, got)
}

// A handler with more spans than MaxHeld only loses its own; a span that ends after its
// attempt is exported when it ends.
func TestHeldSpansAreBounded(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	tel := process(t, out, telemetry.Config{})
	root, end := tel.Root(t.Context(), observer.Subject{})
	end(nil)
	ctx, done := tel.Attempt(t.Context(), root, observer.Subject{Activity: "charge"})
	tracer := tel.TracerProvider().Tracer("shop")
	_, late := tracer.Start(ctx, "late")
	for range telemetry.MaxHeld + 1 {
		_, span := tracer.Start(ctx, "one of many")
		span.End()
	}
	done(nil, nil)
	require.Equal(t, []string{"start", "attempt charge"}, names(out.GetSpans()))
	require.Contains(t, out.GetSpans()[1].Attributes, attribute.Int("quipu.spans.dropped", telemetry.MaxHeld+1))
	late.End()
	requireTree(t, out.GetSpans(), trace.SpanContext{})
	require.Len(t, out.GetSpans(), 3)
}

// Spans of another trace in a handler's context are not held.
func TestOtherTracesAreNotHeld(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	tel := process(t, out, telemetry.Config{})
	root, end := tel.Root(t.Context(), observer.Subject{})
	end(nil)
	ctx, done := tel.Attempt(t.Context(), root, observer.Subject{})
	_, other := tel.TracerProvider().Tracer("shop").Start(ctx, "other", trace.WithNewRoot())
	other.End()
	require.Equal(t, []string{"start", "other"}, names(out.GetSpans()))
	done(nil, nil)
}

func TestWithoutTraceparentNothingIsTraced(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	tel := process(t, out, telemetry.Config{})
	for _, parent := range []string{"", "nonsense", "00-0-0-01"} {
		tel.Told(parent, step(observer.SpanLeg1, "charge", time.Now()))
		ctx, done := tel.Attempt(t.Context(), parent, observer.Subject{})
		require.Equal(t, t.Context(), ctx)
		done(errors.New("x"), []observer.Span{step(observer.SpanEffect, "charge", time.Now())})
	}
	require.Empty(t, out.GetSpans())
}
