package engine_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/inspect/spans"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/view"
)

// recorder keeps what an engine tells its observer.
type recorder struct {
	observer.Nop
	mu     sync.Mutex
	spans  map[observer.Message][]observer.Span
	counts map[string]int64
}

func record() *recorder {
	return &recorder{spans: map[observer.Message][]observer.Span{}, counts: map[string]int64{}}
}

func (r *recorder) Told(m observer.Message, spans ...observer.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans[m] = append(r.spans[m], spans...)
}

func (r *recorder) Count(metric string, n int64, attributes ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[strings.Join(append([]string{metric}, attributes...), " ")] += n
}

// hangs requires that what was told of a job hangs in the tree of its journal, and returns the names
// of the spans under which it does, sorted.
func (r *recorder) hangs(t *testing.T, tree *view.Tree, traceparent string) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[view.SpanID]string{}
	for i := range tree.Spans {
		names[tree.Spans[i].ID] = tree.Spans[i].Name()
	}
	var out []string
	for m, told := range r.spans {
		if m.Job != tree.Job {
			continue
		}
		require.Equal(t, traceparent, m.Traceparent)
		name := names[spans.OfMessage(m.GUID)]
		require.NotEmpty(t, name, "%v was told of a message without a span", told)
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// What an engine tells of every kind of message hangs in the tree that the journal gives (O1). A
// child has a trace of its own, linked to its parent's. Signals and jobs are counted.
func TestSpansAndCountersOfEveryKind(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		told := record()
		r := start(t, engine.Config{NoFold: true, Observer: told}, membus.Config{Seed: 1}, nil, echo(new(atomic.Int64)))
		r.trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		r.deploy(child)
		r.deploy(`
flow: all
version: "1"
activities:
  start: {type: trigger}
  tell: {type: signal, topic: news, key: k}
  wait: {type: hook, signal: news, key: k}
  nap: {type: hook, sleep: 1s}
  ask: {type: await, flow: child, id: the-child, input: {n: 1}}
  early: {type: signal, topic: other, key: k}
  pivot: {type: hook, input: 0}
  again: {type: cycle, to: pivot, input: 1}
  ever: {type: hook, signal: never, key: k}
transitions:
  start: [wait, nap]
  nap: [tell]
  wait: [ask]
  ask: [early]
  early: [pivot]
  pivot: [{to: again, when: "pivot.output < 1"}, {to: ever, when: "pivot.output == 1"}]
`)
		id := r.run("all", "k", `{}`)
		time.Sleep(time.Minute) // the bubble's clock
		r.interrupt(id, stopped, "")
		r.failed(id, journal.JobInterrupted, 410, "enough")
		tree := r.tree(id)
		require.Equal(t, []string{
			"cycle pivot", "dispatch again", "dispatch ask", "dispatch early", "dispatch ever", "dispatch nap", "dispatch pivot",
			"dispatch tell", "dispatch wait", "interrupt", "outcome ask", "start start", "wakeup nap", "wakeup wait",
		}, told.hangs(t, tree, r.trace))
		require.Equal(t, "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331", tree.Context.Trace.String()+" "+tree.Spans[0].Parent.String())
		kid := r.tree(r.find("the-child"))
		require.Equal(t, []string{"dispatch work", "response work", "start start"}, told.hangs(t, kid, ""))
		require.Equal(t, view.Context{Trace: spans.Of(kid.Job, "").Trace}, kid.Context)
		require.Equal(t, named(tree, "activity ask").ID, kid.Spans[0].Links[0].Span)
		require.EqualValues(t, 1, told.counts["quipu.signals outcome consumed"])
		require.EqualValues(t, 1, told.counts["quipu.signals outcome kept"])
		require.EqualValues(t, 1, told.counts["quipu.jobs.begun flow child"])
		require.EqualValues(t, 1, told.counts["quipu.jobs.closed flow all state interrupted"])
		require.EqualValues(t, 1, told.counts["quipu.jobs.closed flow child state completed"])
		slept := named(tree, "wait nap")
		require.InDelta(t, time.Second, time.Duration(slept.End-slept.Start)*time.Microsecond,
			float64(50*time.Millisecond), "it is sent when it is due, however seldom the sweeper looks")
	})
}

// stopped is an interrupt from outside.
var stopped = collation.InterruptOrder{Code: 410, Reason: "enough", Throw: true}

// named is the first span of a name.
func named(tree *view.Tree, name string) (s view.Span) {
	for i := range tree.Spans {
		if tree.Spans[i].Name() == name {
			return tree.Spans[i]
		}
	}
	return s
}

// tree is what the journal of a job gives.
func (r *rig) tree(id journal.JobID) *view.Tree {
	r.t.Helper()
	b := spans.New()
	for _, e := range r.entries(id) {
		b.Add(e)
	}
	return b.Tree(func(journal.JobID) string { return r.trace })
}
