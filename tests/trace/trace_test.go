package trace

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	span "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/telemetry"
)

// patience bounds every wait of the test.
const patience = 90 * time.Second

// gate lets nobody through before it is opened, and says who knocks.
type gate struct {
	knocks chan struct{}
	open   chan struct{}
}

func newGate(t *testing.T) (*gate, string) {
	t.Helper()
	g := &gate{knocks: make(chan struct{}, 16), open: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g.knocks <- struct{}{}
		select {
		case <-g.open:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	return g, server.URL
}

func await[T any](t *testing.T, ctx context.Context, c <-chan T) {
	t.Helper()
	select {
	case <-c:
	case <-ctx.Done():
		require.FailNow(t, "waited in vain")
	}
}

// start runs a worker process that exports to the sink; ended is closed when it
// has ended.
func start(t *testing.T, c childConfig, s *sink) (process *os.Process, ended <-chan error) {
	t.Helper()
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(raw), "OTEL_EXPORTER_OTLP_ENDPOINT="+s.server.URL,
		"OTEL_METRICS_EXPORTER=none", "OTEL_BSP_SCHEDULE_DELAY=50")
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	done := make(chan error, 1)
	finished := make(chan struct{})
	go func() { done <- cmd.Wait(); close(finished) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error says that it has ended
		<-finished
	})
	return cmd.Process, done
}

// client is a runtime that starts jobs and is traced to the sink.
func client(t *testing.T, c childConfig, s *sink) *quipu.Runtime {
	t.Helper()
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(s.server.URL+"/v1/traces"))
	require.NoError(t, err)
	tel, shutdown, err := telemetry.New(t.Context(), telemetry.Config{
		SpanProcessor: sdktrace.NewSimpleSpanProcessor(exporter), Getenv: func(string) string { return "" },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, shutdown(context.Background())) })
	rt, err := quipu.Open(t.Context(), quipu.Config{Postgres: c.Postgres, NATS: c.NATS, Space: "shop", Observer: tel})
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	f, err := flow.New("held").Version("1").Trigger("begin").
		Worker("wait", "hold", flow.Input(map[string]any{"n": "${ begin.output.n }"})).
		Worker("again", "hold", flow.Input(map[string]any{"n": "${ begin.output.n }"})).
		Transition("begin", "wait").Transition("wait", "again").Build()
	require.NoError(t, err)
	require.NoError(t, rt.Deploy(t.Context(), f))
	return rt
}

// A job whose worker is killed in the middle of a handler is one connected tree
// all the same, over three processes (5.4).
func TestOneJobIsOneTreeAcrossAKill(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := newSink(t)
	g, url := newGate(t)
	c := childConfig{Postgres: devtest.Postgres(t), NATS: devtest.NATS(t).URL(), Gate: url}
	rt := client(t, c, s)

	first, ended := start(t, c, s)
	job, err := rt.Start(ctx, "held", "job-1", map[string]any{"n": 1})
	require.NoError(t, err)
	await(t, ctx, g.knocks)
	require.NoError(t, first.Kill())
	await(t, ctx, ended)
	for _, one := range s.all() {
		require.NotEqual(t, "own work", one.GetName(), "a span in an attempt that never ended would be an orphan")
	}

	second, ended := start(t, c, s)
	await(t, ctx, g.knocks)
	close(g.open)
	_, err = rt.Wait(ctx, job)
	require.NoError(t, err)
	require.NoError(t, second.Signal(syscall.SIGTERM))
	await(t, ctx, ended)
	requireTree(t, s.all())
}

// requireTree holds that the spans are one trace with one root, the start, which
// every other span reaches, and that the work of the job is in it.
func requireTree(t *testing.T, spans []*span.Span) {
	t.Helper()
	byID := map[string]*span.Span{}
	count := map[string]int{}
	for _, s := range spans {
		require.Equal(t, spans[0].GetTraceId(), s.GetTraceId(), s.GetName())
		byID[string(s.GetSpanId())] = s
		count[s.GetName()]++
	}
	for _, s := range spans {
		steps := 0
		for at := s; len(at.GetParentSpanId()) > 0; steps++ {
			parent := byID[string(at.GetParentSpanId())]
			require.NotNil(t, parent, "%s has no exported parent", at.GetName())
			require.LessOrEqual(t, steps, len(spans))
			at = parent
		}
		if steps == 0 {
			require.Equal(t, "start held", s.GetName())
		}
	}
	require.Len(t, byID, len(spans))
	require.Equal(t, 1, count["start held"])
	for _, name := range []string{"attempt wait", "attempt again", "leg2 wait", "leg2 again"} {
		require.Equal(t, 1, count[name], "%s in %v", name, count)
	}
	require.Equal(t, 2, count["own work"], "%v", count)
	require.Equal(t, 2, count["effect knock"], "%v", count)
	require.Positive(t, count["commit"], "%v", count)
}
