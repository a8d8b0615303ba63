package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/telemetry"
	"github.com/quipu-journal/quipu/workers"
)

// traced is a runtime's configuration whose spans go to the exporter.
func (e *env) traced(reg *workers.Registry, to *tracetest.InMemoryExporter) quipu.Config {
	e.t.Helper()
	tel, shutdown, err := telemetry.New(e.t.Context(), telemetry.Config{
		Space: e.space, SpanProcessor: sdktrace.NewSimpleSpanProcessor(keep{to}),
	})
	require.NoError(e.t, err)
	e.t.Cleanup(func() { require.NoError(e.t, shutdown(context.Background())) })
	cfg := e.config(reg)
	cfg.Observer = tel
	return cfg
}

// keep is an exporter that holds its spans over a shutdown.
type keep struct{ *tracetest.InMemoryExporter }

// Shutdown implements sdktrace.SpanExporter.
func (keep) Shutdown(context.Context) error { return nil }

// 5.4: one job is one connected tree, also across a crash: the first process
// vanishes in the middle of a handler, a second one goes on.
func TestOneJobOneTreeAcrossACrash(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		spans := tracetest.NewInMemoryExporter()
		var runs atomic.Int64
		inside, vanish := make(chan struct{}), make(chan struct{})
		reg := workers.New()
		workers.Handle(reg, "charge", func(ctx context.Context, _ charge) (map[string]any, error) {
			if runs.Add(1) == 1 {
				close(inside)
				<-vanish
				return nil, context.Canceled
			}
			return effects.Do(ctx, "call", func(context.Context) (map[string]any, error) {
				return map[string]any{"receipt": "r"}, nil
			}, effects.Idempotent)
		})
		first, err := quipu.Open(t.Context(), e.traced(reg, spans))
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- first.Run(context.Background()) }()
		e.deploy(first, fmt.Sprintf(chargeFlow, ""))
		job := e.start(first, "order", "order-1", map[string]any{"total": 1})
		<-inside
		first.Close() // the connections break under the running handler, as in a crash

		rt := e.open(e.traced(reg, spans))
		e.work(rt)
		_, err = e.wait(rt, job)
		require.NoError(t, err)
		close(vanish)
		<-ended
		e.eventually("the attempt's span", func() bool { return len(names(spans.GetSpans())["attempt"]) > 0 })
		requireOneTree(t, spans.GetSpans())
	})
}

func names(spans tracetest.SpanStubs) map[string][]tracetest.SpanStub {
	out := map[string][]tracetest.SpanStub{}
	for _, s := range spans {
		kind := s.Name
		for i, c := range s.Name {
			if c == ' ' {
				kind = s.Name[:i]
				break
			}
		}
		out[kind] = append(out[kind], s)
	}
	return out
}

// requireOneTree checks that there is one root, from which every span of the
// trace is reached, and that the steps are among them.
func requireOneTree(t *testing.T, spans tracetest.SpanStubs) {
	t.Helper()
	byID := map[string]tracetest.SpanStub{}
	for _, s := range spans {
		byID[s.SpanContext.SpanID().String()] = s
	}
	roots := 0
	trace := spans[0].SpanContext.TraceID()
	for _, s := range spans {
		require.Equal(t, trace, s.SpanContext.TraceID(), "one trace")
		if !s.Parent.SpanID().IsValid() {
			roots++
			continue
		}
		_, known := byID[s.Parent.SpanID().String()]
		require.True(t, known, "span %q has a parent that was never exported", s.Name)
	}
	require.Equal(t, 1, roots)
	kinds := names(spans)
	for _, kind := range []string{"start", "trigger", "leg2", "step1", "step2", "step3", "commit", "publish", "attempt", "effect"} {
		require.NotEmpty(t, kinds[kind], "spans are %v", list(kinds))
	}
}

func list(kinds map[string][]tracetest.SpanStub) string {
	out := map[string]int{}
	for k, s := range kinds {
		out[k] = len(s)
	}
	b, _ := json.Marshal(out)
	return string(b)
}
