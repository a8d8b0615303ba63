package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/quipu-journal/quipu/internal/inspect/spans"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// maxSpans bounds the spans of one request to the collector.
const maxSpans = 512

// Traces implements observer.Observer.
func (t *Telemetry) Traces() bool { return t.exporter != nil }

// Sampled implements observer.Observer. A job that was started under a span is sampled as that
// is; the sampler decides about the others, by their trace's id, the same in every process.
func (t *Telemetry) Sampled(job journal.JobID, traceparent string) bool {
	return t.exporter != nil && t.flags(spans.Of(job, traceparent)) == trace.FlagsSampled
}

func (t *Telemetry) flags(c view.Context) trace.TraceFlags {
	ctx := context.Background()
	if !c.Caller.IsZero() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID(c.Trace), SpanID: trace.SpanID(c.Caller), TraceFlags: trace.TraceFlags(c.Flags),
			Remote: true,
		}))
	}
	r := t.sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: ctx, TraceID: trace.TraceID(c.Trace)})
	if r.Decision == sdktrace.RecordAndSample {
		return trace.FlagsSampled
	}
	return 0
}

// Trees implements observer.Observer. The spans of a tree are the same bytes from whatever process
// they come, so that a collector which has them already drops them.
func (t *Telemetry) Trees(ctx context.Context, trees ...*view.Tree) error {
	if t.exporter == nil {
		return nil
	}
	var stubs tracetest.SpanStubs
	for _, x := range trees {
		for _, s := range x.Ended() {
			stubs = append(stubs, t.stub(x, &s))
		}
	}
	for len(stubs) > 0 {
		n := min(len(stubs), maxSpans)
		if err := t.exporter.ExportSpans(ctx, stubs[:n].Snapshots()); err != nil {
			return fmt.Errorf("send %d spans to the collector: %w", n, err)
		}
		stubs = stubs[n:]
	}
	return nil
}

// of is the resource of a tree. It names no process, because the tree belongs to none.
func of(x *view.Tree) *resource.Resource {
	return resource.NewSchemaless(attribute.String("service.name", DefaultService), attribute.String(keySpace, x.Space))
}

// stub makes a span of OpenTelemetry.
func (t *Telemetry) stub(x *view.Tree, s *view.Span) tracetest.SpanStub {
	context := func(id view.TraceID, span view.SpanID) trace.SpanContext {
		return trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID(id), SpanID: trace.SpanID(span), TraceFlags: trace.FlagsSampled,
		})
	}
	out := tracetest.SpanStub{
		Name: cut(s.Name(), MaxName), SpanContext: context(x.Context.Trace, s.ID), SpanKind: kinds[s.Kind],
		StartTime: time.UnixMicro(s.Start), EndTime: time.UnixMicro(s.End),
		Resource: of(x), InstrumentationScope: instrumentation.Scope{Name: scope},
	}
	if !s.Parent.IsZero() {
		out.Parent = context(x.Context.Trace, s.Parent)
	}
	for _, a := range s.Attributes {
		if a.Text != "" {
			out.Attributes = append(out.Attributes, attribute.String(a.Key, cut(a.Text, MaxText)))
		} else {
			out.Attributes = append(out.Attributes, attribute.Int64(a.Key, a.Number))
		}
	}
	for _, l := range s.Links {
		out.Links = append(out.Links, sdktrace.Link{
			SpanContext: context(l.Trace, l.Span), Attributes: []attribute.KeyValue{attribute.String(keyLink, l.Why)},
		})
	}
	if f := s.Failure; f != nil {
		kind := cut(cmp.Or(f.Class, strconv.Itoa(s.Code)), MaxText)
		out.Attributes = append(out.Attributes, attribute.String(keyError, kind))
		out.Status = sdktrace.Status{Code: codes.Error, Description: kind}
		if t.errorText {
			out.Status.Description = cut(f.Message, MaxText)
		}
	}
	return out
}

var kinds = map[view.SpanKind]trace.SpanKind{
	view.Internal: trace.SpanKindInternal, view.Producer: trace.SpanKindProducer,
	view.Consumer: trace.SpanKindConsumer, view.Client: trace.SpanKindClient,
}
