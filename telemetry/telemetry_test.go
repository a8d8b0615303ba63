package telemetry_test

import (
	"context"
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

	"github.com/quipu-journal/quipu/internal/inspect/spans"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process is one process of a space; all processes export to the same place.
func process(t *testing.T, out *tracetest.InMemoryExporter, cfg telemetry.Config) *telemetry.Telemetry {
	t.Helper()
	cfg.Exporter = keep{out}
	if cfg.Getenv == nil {
		cfg.Getenv = env()
	}
	tel, shutdown, err := telemetry.New(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, shutdown(context.Background())) })
	return tel
}

// keep is an exporter whose spans survive a shutdown.
type keep struct{ *tracetest.InMemoryExporter }

func (keep) Shutdown(context.Context) error { return nil }

// flush sends what the provider has batched.
func flush(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	require.NoError(t, tel.TracerProvider().(*sdktrace.TracerProvider).ForceFlush(t.Context()))
}

func names(spans tracetest.SpanStubs) []string {
	out := make([]string, len(spans))
	for i, s := range spans {
		out[i] = s.Name
	}
	return out
}

const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// sample is the tree of a small job, with a failed attempt.
func sample(traceparent string) *view.Tree {
	job := journal.JobID{1, 2, 3}
	x := &view.Tree{Job: job, Context: spans.Of(job, traceparent), Space: "shop", Key: "o-1", State: journal.JobFailed}
	root := spans.OfJob(job)
	x.Spans = []view.Span{
		{
			ID: root, Parent: x.Context.Caller, Part: spans.PartJob, About: "order", Kind: view.Consumer, Start: 1, End: 9,
			Attributes: []view.Attribute{{Key: "quipu.key", Text: strings.Repeat("é", telemetry.MaxText)}, {Key: "quipu.generation", Number: 1}},
			Links:      []view.Link{{Trace: view.TraceID{7}, Span: view.SpanID{8}, Why: "parent"}},
		},
		{
			ID: spans.OfAttempt(journal.GUID{4}, 1), Parent: root, Part: spans.PartAttempt, About: "charge", Start: 2, End: 5,
			Failure: &view.Failure{Class: "declined", Message: "card 4111 was declined"}, Code: 402,
		},
		{ID: view.SpanID{6}, Parent: root, Part: spans.PartEffect, About: "open", Start: 2},
	}
	return x
}

// Handlers' own spans nest in the attempt that the journal's tree has, in whatever process they
// are made: also in one that is killed before its attempt ends (O1).
func TestHandlersSpansHangInTheTree(t *testing.T) {
	t.Parallel()
	for _, stored := range []string{"", caller} {
		out := tracetest.NewInMemoryExporter()
		engine, killed, second := process(t, out, telemetry.Config{}), process(t, out, telemetry.Config{}),
			process(t, out, telemetry.Config{})
		x := sample(stored)
		under := engine.Under(observer.Message{Job: x.Job, Traceparent: stored, GUID: journal.GUID{4}}, 1)
		mine, err := baggage.Parse("tenant=7")
		require.NoError(t, err)
		for _, tel := range []*telemetry.Telemetry{killed, second} {
			ctx, done := tel.Attempt(baggage.ContextWithBaggage(t.Context(), mine), under,
				observer.Subject{Job: "j", Activity: "charge", Attempt: 2})
			for name, value := range map[string]string{"tenant": "7", "quipu.job": "j", "quipu.activity": "charge", "quipu.attempt": "2"} {
				require.Equal(t, value, baggage.FromContext(ctx).Member(name).Value())
			}
			_, own := tel.TracerProvider().Tracer("shop").Start(ctx, "prepare")
			own.End()
			if tel == second {
				done(nil, nil)
			}
			flush(t, tel)
		}
		require.NoError(t, second.Trees(t.Context(), x))
		spans := out.GetSpans()
		require.Equal(t, []string{"prepare", "prepare", "job order", "attempt charge"}, names(spans), "what has not ended is not sent")
		for _, s := range spans {
			require.Equal(t, x.Context.Trace.String(), s.SpanContext.TraceID().String())
		}
		require.Equal(t, x.Context.Caller.String(), spans[2].Parent.SpanID().String())
		for _, own := range spans[:2] {
			require.Equal(t, spans[3].SpanContext.SpanID(), own.Parent.SpanID())
		}
	}
}

// A span inside another is sent when the outermost one has ended, after it: a process that is killed
// before leaves none whose parent was not sent. A handler with more spans than MaxHeld loses none.
func TestSpansGoAfterTheOutermostOne(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	tel := process(t, out, telemetry.Config{})
	tracer := tel.TracerProvider().Tracer("shop")
	handler, _ := tel.Attempt(t.Context(), caller, observer.Subject{})
	ctx, outer := tracer.Start(handler, "outer")
	inside, middle := tracer.Start(ctx, "middle")
	_, inner := tracer.Start(inside, "inner")
	_, late := tracer.Start(ctx, "late")
	inner.End()
	middle.End()
	_, other := tracer.Start(handler, "other")
	other.End()
	flush(t, tel)
	require.Equal(t, []string{"other"}, names(out.GetSpans()))
	outer.End()
	late.End()
	flush(t, tel)
	require.Equal(t, []string{"other", "outer", "middle", "inner", "late"}, names(out.GetSpans()))

	ctx, outer = tracer.Start(handler, "outer")
	for range telemetry.MaxHeld + 1 {
		_, span := tracer.Start(ctx, "one of many")
		span.End()
	}
	flush(t, tel)
	require.Len(t, out.GetSpans(), 5+1)
	outer.End()
	flush(t, tel)
	require.Len(t, out.GetSpans(), 5+1+telemetry.MaxHeld+1)
}

// A tree is the same bytes from every process, so that a collector drops what it has (O2).
func TestTreesAreTheSameFromEveryProcess(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	first := process(t, out, telemetry.Config{Name: "a", Version: "1", Service: "one", Traces: telemetry.TracesLive})
	second := process(t, out, telemetry.Config{Name: "b", Version: "2"})
	require.NoError(t, first.Trees(t.Context(), sample(caller)))
	require.NoError(t, second.Trees(t.Context(), sample(caller)))
	spans := out.GetSpans()
	require.Len(t, spans, 4)
	require.Equal(t, spans[:2].Snapshots(), spans[2:].Snapshots())
	require.Equal(t, `quipu.space=shop,service.name=quipu`, spans[0].Resource.Encoded(attribute.DefaultEncoder()))
	require.Equal(t, []attribute.KeyValue{attribute.String("quipu.link", "parent")}, spans[0].Links[0].Attributes)
}

// What no entry tells is a span of TracesLive only, under that of its message.
func TestLiveSpans(t *testing.T) {
	t.Parallel()
	m := observer.Message{Job: journal.JobID{1}, GUID: journal.GUID{5}}
	for traces, want := range map[telemetry.Traces][]string{telemetry.TracesJournal: {}, telemetry.TracesLive: {"commit", "signal wait"}} {
		out := tracetest.NewInMemoryExporter()
		tel := process(t, out, telemetry.Config{Traces: traces})
		tel.Told(m, observer.Span{Name: observer.SpanCommit, Start: time.Now(), End: time.Now()},
			observer.Span{
				Name: observer.SpanSignal, Subject: observer.Subject{Activity: "wait", Link: caller}, Start: time.Now(),
				End: time.Now(),
			})
		flush(t, tel)
		stubs := out.GetSpans()
		require.Equal(t, want, names(stubs))
		for _, s := range stubs {
			require.Equal(t, spans.OfMessage(m.GUID).String(), s.Parent.SpanID().String())
			require.Equal(t, spans.Of(m.Job, "").Trace.String(), s.SpanContext.TraceID().String())
		}
		if len(stubs) > 0 {
			require.Len(t, stubs[1].Links, 1)
		}
	}
}

// A trace that the caller does not sample is not sampled here, and its traceparent tells others.
// The sampler decides about jobs without a caller, the same in every process.
func TestSampling(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	tel := process(t, out, telemetry.Config{Traces: telemetry.TracesLive})
	dark := caller[:len(caller)-2] + "00"
	m := observer.Message{Job: journal.JobID{1}, Traceparent: dark, GUID: journal.GUID{5}}
	require.True(t, strings.HasSuffix(tel.Under(m, 1), "-00"))
	require.False(t, tel.Sampled(m.Job, dark))
	require.True(t, tel.Sampled(m.Job, caller))
	require.True(t, tel.Sampled(m.Job, ""))
	tel.Told(m, observer.Span{Name: observer.SpanCommit})
	ctx, _ := tel.Attempt(t.Context(), tel.Under(m, 1), observer.Subject{})
	require.False(t, trace.SpanContextFromContext(ctx).IsSampled())
	flush(t, tel)
	require.Empty(t, out.GetSpans())

	tenth := env("OTEL_TRACES_SAMPLER", "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG", "0.1")
	one, two := process(t, out, telemetry.Config{Getenv: tenth}), process(t, out, telemetry.Config{Getenv: tenth})
	sampled := 0
	for i := range 1000 {
		job := journal.DeriveJob("shop", fmt.Sprint(i), 1)
		require.Equal(t, one.Sampled(job, ""), two.Sampled(job, ""))
		if one.Sampled(job, "") {
			sampled++
		}
		require.True(t, one.Sampled(job, caller))
	}
	require.InDelta(t, 100, sampled, 40)
	never := process(t, out, telemetry.Config{Getenv: env("OTEL_TRACES_SAMPLER", "always_off")})
	require.False(t, never.Sampled(m.Job, caller))
}

func TestAttributesAndStatusHoldNoPayload(t *testing.T) {
	t.Parallel()
	for _, text := range []bool{false, true} {
		out := tracetest.NewInMemoryExporter()
		tel := process(t, out, telemetry.Config{ErrorText: text, Traces: telemetry.TracesLive})
		require.NoError(t, tel.Trees(t.Context(), sample("")))
		tel.Told(observer.Message{}, observer.Span{Name: observer.SpanCommit, Err: fmt.Errorf("charge: %w", &declined{card: "4111"})})
		flush(t, tel)
		spans := out.GetSpans()
		require.Len(t, spans[0].Attributes[0].Value.AsString(), telemetry.MaxText)
		require.Equal(t, attribute.Int64("quipu.generation", 1), spans[0].Attributes[1])
		for i, kind := range map[int]string{1: "declined", 2: "*telemetry_test.declined"} {
			require.Contains(t, spans[i].Attributes, attribute.String("error.type", kind))
			require.Equal(t, codes.Error, spans[i].Status.Code)
			require.Equal(t, text, strings.Contains(spans[i].Status.Description, "4111"), spans[i].Status.Description)
		}
	}
}

type declined struct{ card string }

func (d *declined) Error() string { return "card " + d.card + " was declined" }

// Without a traceparent a handler's context is left alone.
func TestWithoutTraceparentNothingIsTraced(t *testing.T) {
	t.Parallel()
	tel := process(t, tracetest.NewInMemoryExporter(), telemetry.Config{})
	for _, parent := range []string{"", "nonsense", "00-0-0-01"} {
		ctx, done := tel.Attempt(t.Context(), parent, observer.Subject{})
		require.Equal(t, t.Context(), ctx)
		done(nil, nil)
	}
	require.Empty(t, tel.Trace(t.Context()))
}
