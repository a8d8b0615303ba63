package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/engine"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/observer"
	busmem "github.com/quipu-journal/quipu/transport/memory"
)

// recorder keeps what an engine tells its observer.
type recorder struct {
	observer.Nop
	mu     sync.Mutex
	roots  []observer.Subject
	spans  map[string][]observer.Span // by traceparent
	counts map[string]int64
}

func record() *recorder {
	return &recorder{spans: map[string][]observer.Span{}, counts: map[string]int64{}}
}

func (r *recorder) Root(_ context.Context, s observer.Subject) (string, func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roots = append(r.roots, s)
	return fmt.Sprintf("00-%032d-%016d-01", 100+len(r.roots), 1), func(error) {}
}

func (r *recorder) Told(traceparent string, spans ...observer.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans[traceparent] = append(r.spans[traceparent], spans...)
}

func (r *recorder) Count(metric string, n int64, attributes ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[strings.Join(append([]string{metric}, attributes...), " ")] += n
}

// named lists the spans of a trace as "name activity", sorted.
func (r *recorder) named(trace string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, s := range r.spans[trace] {
		out = append(out, strings.TrimSpace(s.Name+" "+s.Subject.Activity))
	}
	slices.Sort(out)
	return out
}

// 5.4: every kind of message is a span in its job's trace. A child has a trace of its own,
// linked to its parent's. Signals and jobs are counted.
func TestSpansAndCountersOfEveryKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := record()
		r := start(t, engine.Config{NoFold: true, Observer: told}, busmem.Config{Seed: 1}, nil, handlers())
		defer r.close()
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
  ask: {type: await, flow: child, id: the-child, input: {n: 1, code: 0}}
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
		require.Equal(t, []string{
			"cycle pivot", "interrupt", "leg1 again", "leg1 ask", "leg1 early", "leg1 ever", "leg1 nap", "leg1 pivot",
			"leg1 tell", "leg1 wait", "outcome ask", "signal wait", "trigger start", "wakeup nap", "wakeup wait",
		}, told.named(r.trace))
		require.Len(t, told.roots, 1)
		require.Equal(t, r.trace, told.roots[0].Link)
		require.Equal(t, "the-child", told.roots[0].Key)
		require.Equal(t, []string{"leg1 work", "leg2 work", "trigger start"}, told.named(r.view(r.find("the-child")).Trace))
		require.EqualValues(t, 1, told.counts["quipu.signals outcome consumed"])
		require.EqualValues(t, 1, told.counts["quipu.signals outcome kept"])
		require.EqualValues(t, 1, told.counts["quipu.jobs.begun flow child"])
		require.EqualValues(t, 1, told.counts["quipu.jobs.closed flow all state interrupted"])
		require.EqualValues(t, 1, told.counts["quipu.jobs.closed flow child state completed"])
		var asleep, woken time.Time
		for _, s := range told.spans[r.trace] {
			switch s.Name + " " + s.Subject.Activity {
			case "wakeup nap":
				require.Equal(t, "timer", s.Subject.By)
				woken = s.Start
			case "leg1 nap":
				asleep = s.Start
			case "wakeup wait":
				require.Equal(t, "signal", s.Subject.By)
			case "outcome ask":
				require.Equal(t, r.find("the-child").String(), s.Subject.Child)
			}
		}
		require.InDelta(t, time.Second, woken.Sub(asleep), float64(50*time.Millisecond), "it is sent when it is due, however seldom the sweeper looks")
	})
}
