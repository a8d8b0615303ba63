package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

const resumed = `
flow: resumed
version: "1"
output: {a: "${ a.output }", b: "${ b.output }", c: "${ c.output }"}
activities:
  start: {type: trigger}
  a: {type: worker, topic: a, output: {n: "${ a.output }"}}
  pivot: {type: hook, input: {n: 0}}
  b: {type: worker, topic: b, each: "${ start.output }", parallel: 2}
  again: {type: cycle, to: pivot, input: {n: "${ pivot.output.n + 1 }"}}
  c: {type: worker, topic: c}
transitions:
  start: [a]
  a: [pivot]
  pivot: [b]
  b: [{to: again, when: "${ pivot.output.n < 2 }"}, {to: c, when: "${ pivot.output.n >= 2 }"}]
`

// A resuming job has the results of the earlier ones, in every pass, also with the store in
// memory, whether plans fold or not. Only what failed is done again, element by element. A
// third generation has the results of the first.
func TestResumeInMemory(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]engine.Config{"folded": {}, "stepwise": {Stepwise: true}, "apart": {NoFold: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				done, fails := map[string]int{}, map[string]bool{"b3": true, "c": true}
				act := func(name string) (string, error) {
					mu.Lock()
					defer mu.Unlock()
					if done[name]++; fails[name] && done[name] > 0 {
						return "", workers.Fatal(errors.New(name + " fails"))
					}
					return name, nil
				}
				reg := workers.New()
				workers.Handle(reg, "a", func(context.Context, any) (string, error) { return act("a") })
				workers.Handle(reg, "b", func(_ context.Context, n int) (string, error) { return act(fmt.Sprint("b", n)) })
				workers.HandleDurable(reg, "c", func(ctx context.Context, _ any) (string, error) {
					x, err := effects.Do(ctx, "x", func(context.Context) (string, error) { return act("x") })
					if err == nil {
						err = workers.Sleep(ctx, "night", 50*time.Minute)
					}
					if err != nil {
						return "", err
					}
					y, err := act("c")
					return x + y, err
				})
				r := start(t, cfg, membus.Config{}, nil, reg)
				r.deploy(resumed)
				first := r.run("resumed", "k", "[1,2,3,4]")
				r.failed(first, journal.JobFailed, 500, "b3 fails")
				in := r.asks("resumed", "k", "[1,2,3,4]")
				resume := func(id journal.JobID, from journal.From) journal.JobID {
					from.Job, from.Who = id, "ann"
					next, err := r.eng.Committer().Resume(t.Context(), in, from)
					require.NoError(t, err)
					_, err = r.eng.Committer().Resume(t.Context(), in, from)
					require.ErrorIs(t, err, store.ErrStale)
					return next
				}
				_, err := r.eng.Committer().Resume(t.Context(), in, journal.From{Job: journal.JobID{1}})
				require.ErrorIs(t, err, store.ErrNotFound)
				fails["b3"] = false
				second := resume(first, r.closer(first))
				r.failed(second, journal.JobFailed, 500, "c fails")
				require.Equal(t, map[string]int{"a": 1, "b1": 3, "b2": 3, "b3": 4, "b4": 3, "x": 1, "c": 1}, done)
				fails["c"] = false
				before := time.Now()
				third := resume(second, r.closer(second))
				r.output(third, `{"a":{"n":"a"},"b":["b1","b2","b3","b4"],"c":"xc"}`)
				require.Less(t, time.Since(before), 10*time.Minute, "the night is over")
				require.Equal(t, map[string]int{"a": 1, "b1": 3, "b2": 3, "b3": 4, "b4": 3, "x": 1, "c": 2}, done)
				require.Equal(t, third, r.find("k"))
				_, err = r.eng.Committer().Resume(t.Context(), in, journal.From{Job: third, Who: "ann"})
				require.ErrorIs(t, err, store.ErrStale, "it has completed")
				require.Equal(t, second, r.view(first).Next)
				require.Equal(t, first, r.view(second).From.Job)
				require.Equal(t, first, r.view(third).From.Root)
				for _, e := range r.entries(third) {
					require.NotEqual(t, journal.MessageRequest, sent(e, "a"), "nobody is asked again")
				}
				r.proved(first, second, third)
			})
		})
	}
}

// closer is the instance that closed the job.
func (r *rig) closer(id journal.JobID) journal.From {
	for _, e := range r.entries(id) {
		if e.Close != nil {
			return journal.From{Activity: e.Activity, DAD: e.DAD}
		}
	}
	return journal.From{}
}

// sent is the kind of the message that an entry dispatches to an activity.
func sent(e *journal.Entry, activity string) journal.MessageKind {
	for i := range e.Dispatched {
		if d := &e.Dispatched[i]; d.Activity == activity && d.Kind != journal.MessageLeg1 {
			return d.Kind
		}
	}
	return ""
}
