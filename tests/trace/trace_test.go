package trace

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry"
	"github.com/quipu-journal/quipu/view"
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

// start runs a worker process that exports to the backend.
func start(t *testing.T, c childConfig, to backend) *world.Process {
	t.Helper()
	p := world.StartProcess(t, &devtest.Log{}, os.Args[0], world.Variable(childEnv, c), "OTEL_EXPORTER_OTLP_ENDPOINT="+to.url(),
		"OTEL_METRICS_EXPORTER=none", "OTEL_BSP_SCHEDULE_DELAY=50")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("worker %d said:\n%s", p.PID, p.Log)
		}
	})
	return p
}

// client is a runtime that starts jobs, without tracing.
func client(w *world.World) *quipu.Runtime {
	w.T.Helper()
	cfg := w.Config()
	cfg.Roles = []quipu.Role{quipu.RoleSchedule}
	rt := w.Open(cfg)
	w.Deploy(rt, voyage)
	w.Deploy(rt, leg)
	return rt
}

const voyage = `
flow: voyage
version: "1"
activities:
  begin: {type: trigger}
  hold: {type: worker, topic: hold, input: {n: 1}}
  load: {type: worker, topic: step, each: begin.output.crates, parallel: 2, input: {crate: "${ item }"}}
  retry: {type: worker, topic: step, input: {fails: true}, retry: {backoff: 50ms, jitter: 0}}
  pilot: {type: hook, signal: pilot.aboard, key: "${ job.id }"}
  tow: {type: await, flow: leg, input: {n: 1}}
  nap: {type: hook, sleep: 50ms}
  chart: {type: worker, topic: step, input: {n: 7}}
  moor: {type: worker, topic: step, input: {n: 8}}
  unload: {type: worker, topic: step, input: {n: 9}}
  tell: {type: signal, topic: voyage.over, key: k}
  log: {type: worker, topic: step, input: {n: 10}}
transitions:
  begin: [hold]
  hold: [load]
  load: [retry]
  retry: [pilot]
  pilot: [tow]
  tow: [nap]
  nap: [chart, moor]
  chart: [tell]
  moor: [unload]
  unload: [log]
`

const leg = `
flow: leg
version: "1"
activities:
  begin: {type: trigger}
  pull: {type: worker, topic: step, input: {n: 1}}
transitions: {begin: [pull]}
`

// A job of many steps over two workers, of which one is killed in the middle of a handler, is one
// tree: in the collector when the job has ended, and the same after its trace is sent again from
// the journal (O1, O2). to is a collector of the tests, or Jaeger (O3).
func oneTree(t *testing.T, to backend) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g, url := newGate(t)
	w := world.New(t, "shop")
	c := childConfig{Postgres: w.Postgres, NATS: w.NATS.URL(), Gate: url}
	rt := client(w)
	first := start(t, c, to)
	job, err := rt.Start(ctx, "voyage", "v-1", map[string]any{"crates": []int{1, 2, 3}})
	require.NoError(t, err)
	world.AwaitFrom(first, "its knock", g.knocks)
	second := start(t, c, to)
	first.Kill()
	world.AwaitFrom(second, "its knock", g.knocks)
	close(g.open)
	ctx = second.While(ctx)
	_, err = rt.Signal(ctx, "pilot.aboard", "v-1", map[string]any{"pilot": "Ada"})
	require.NoError(t, err)
	_, err = rt.Wait(ctx, job)
	require.NoError(t, err)

	tree := treeOf(t, ctx, rt, job.ID)
	id := tree.Context.Trace.String()
	spans := whole(t, ctx, to, id, "job voyage")
	requireVoyage(t, spans)
	child := treeOf(t, ctx, rt, childOf(t, tree))
	kids := whole(t, ctx, to, child.Context.Trace.String(), "job leg")
	requireTree(t, kids, "", "job leg")
	linked(t, spans, "child tow", kids, "job leg")
	linked(t, kids, "job leg", spans, "activity tow")

	tel, shutdown, err := telemetry.New(ctx, telemetry.Config{Endpoint: to.url(), Getenv: func(string) string {
		return ""
	}})
	require.NoError(t, err)
	require.NoError(t, tel.Trees(ctx, tree, child))
	require.NoError(t, shutdown(ctx))
	time.Sleep(settles) // a collector may take what it accepted later
	require.Equal(t, names(spans), names(to.spans(ctx, id)), "sending it again changes nothing")
	requireVoyage(t, to.spans(ctx, id))
}

// childOf is the id of the child that a tree names.
func childOf(t *testing.T, tree *view.Tree) journal.JobID {
	t.Helper()
	for _, s := range tree.Spans {
		for _, a := range s.Attributes {
			if a.Key == "quipu.child" {
				id, err := journal.ParseJobID(a.Text)
				require.NoError(t, err)
				return id
			}
		}
	}
	require.Fail(t, "there is no child")
	return journal.JobID{}
}

// settles is how long nothing more of a trace comes before it is taken for whole.
const settles = 500 * time.Millisecond

// whole waits until the collector has the root of a trace, and shows what came before it.
func whole(t *testing.T, ctx context.Context, to backend, id, root string) (spans []span) {
	t.Helper()
	for last := -1; ; {
		spans = to.spans(ctx, id)
		pause := 100 * time.Millisecond
		if names(spans)[root] > 0 {
			if len(spans) == last {
				return spans
			}
			last, pause = len(spans), settles
		}
		select {
		case <-ctx.Done():
			require.FailNow(t, "the trace did not come", "%v: %v", context.Cause(ctx), names(spans))
		case <-time.After(pause):
		}
	}
}

// requireVoyage requires the tree of a voyage: every activity with its attempts.
func requireVoyage(t *testing.T, spans []span) {
	t.Helper()
	requireTree(t, spans, "", "job voyage")
	for activity, want := range map[string]map[string]int{
		"begin":  {"start begin": 1},
		"hold":   {"dispatch hold": 1, "attempt hold": 1, "queued hold": 1, "run hold": 1, "effect knock": 1, "own work": 2, "outer": 1, "inner": 1, "response hold": 1},
		"load":   {"dispatch load": 1, "attempt load": 3, "queued load": 3, "run load": 3, "response load": 3},
		"retry":  {"attempt retry": 2, "run retry": 2, "backoff retry": 1, "response retry": 2},
		"pilot":  {"dispatch pilot": 1, "wait pilot": 1, "wakeup pilot": 1},
		"tow":    {"dispatch tow": 1, "child tow": 1, "outcome tow": 1},
		"nap":    {"wait nap": 1, "wakeup nap": 1},
		"chart":  {"attempt chart": 1, "run chart": 1, "response chart": 1},
		"moor":   {"attempt moor": 1, "run moor": 1, "response moor": 1},
		"unload": {"attempt unload": 1, "run unload": 1, "response unload": 1},
		"tell":   {"dispatch tell": 1, "send voyage.over": 1},
		"log":    {"attempt log": 1, "run log": 1, "response log": 1},
	} {
		got := under(spans, "activity "+activity)
		for name, n := range want {
			require.Equal(t, n, got[name], "%s in activity %s: %v", name, activity, got)
		}
		require.Positive(t, got["step 2"]+got["dispatch "+activity], "%s: %v", activity, got)
	}
	require.Positive(t, names(spans)["commit"], "it is traced live")
}

// linked requires a link from one span to another.
func linked(t *testing.T, from []span, name string, to []span, target string) {
	t.Helper()
	ids := map[string]string{}
	for _, s := range to {
		ids[s.ID] = s.Name
	}
	for _, s := range from {
		if s.Name == name {
			require.Len(t, s.Links, 1)
			require.Equal(t, target, ids[s.Links[0]])
			return
		}
	}
	require.Fail(t, "no such span", name)
}

func TestOneJobIsOneTreeAcrossAKill(t *testing.T) {
	t.Parallel()
	oneTree(t, newSink(t))
}

// The trace of a job that ends while the collector is away, by a worker that is killed then, is sent
// by the next worker (O2).
func TestNoTraceIsLostWithAWorker(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := newSink(t)
	s.away.Store(true)
	w := world.New(t, "shop")
	c := childConfig{Postgres: w.Postgres, NATS: w.NATS.URL()}
	rt := client(w)
	first := start(t, c, s)
	job, err := rt.Start(ctx, "leg", "l-1", map[string]any{})
	require.NoError(t, err)
	_, err = rt.Wait(first.While(ctx), job)
	require.NoError(t, err)
	first.Kill()
	require.Empty(t, s.all)
	s.away.Store(false)
	ctx = start(t, c, s).While(ctx)
	tree := treeOf(t, ctx, rt, job.ID)
	requireTree(t, whole(t, ctx, s, tree.Context.Trace.String(), "job leg"), "", "job leg")
}

// treeOf is the tree that the journal of a job gives.
func treeOf(t *testing.T, ctx context.Context, rt *quipu.Runtime, id journal.JobID) *view.Tree {
	t.Helper()
	job, err := rt.Inspect(ctx, quipu.Job{ID: id}, view.Want{Tree: true})
	require.NoError(t, err)
	return job.Tree
}
