package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

const child = `
flow: child
version: "1"
output: {n: "${ work.output.n }"}
activities:
  start: {type: trigger}
  work: {type: worker, topic: work, input: {n: "${ start.output.n }"}}
transitions: {start: [work]}
`

// T2: what a plan sends, to its own job and to others, is published right after the commit. No
// step here waits for the sweeper, which does not look, and a timer is sent when it is due (W9).
func TestT2NothingWaitsForTheSweeper(t *testing.T) {
	each(t, func(t *testing.T, cfg engine.Config) {
		cfg.Sweep, cfg.Resend = 24*time.Hour, 24*time.Hour
		r := start(t, cfg, membus.Config{Seed: 1}, nil, echo(new(atomic.Int64)))
		synctest.Wait() // the first sweep is over
		r.deploy(child)
		r.deploy(`
flow: listen
version: "1"
output: {got: "${ wait.output.n }"}
activities:
  start: {type: trigger}
  wait: {type: hook, signal: news, key: k}
transitions: {start: [wait]}
`)
		r.deploy(`
flow: all
version: "1"
activities:
  start: {type: trigger}
  items: {type: worker, topic: work, each: "[1, 2, 3, 4, 5]", parallel: 1, input: "${ item }"}
  ask: {type: await, flow: child, input: {n: 1}}
  send: {type: await, await: false, flow: child, input: {n: 1}}
  no: {type: await, flow: nobody}
  tell: {type: signal, topic: news, key: k, payload: {n: 7}}
  pivot: {type: hook, input: 0}
  again: {type: cycle, to: pivot, input: "${ pivot.output + 1 }"}
  nap: {type: hook, sleep: 100ms}
  stop: {type: interrupt, target: other, reason: enough}
  own: {type: interrupt, throw: false}
transitions:
  start: [items]
  items: [ask]
  ask: [send]
  send: [no]
  no: [{to: tell, on: error}]
  tell: [pivot]
  pivot: [{to: again, when: "pivot.output < 3"}, {to: nap, when: "pivot.output == 3"}]
  nap: [stop]
  stop: [own]
`)
		began := time.Now()
		listen, other := r.publish("listen", "listen", `{}`), r.publish("listen", "other", `{}`)
		synctest.Wait()
		id := r.publish("all", "all", `{}`)
		r.ended([]journal.JobID{id, listen, other})
		require.Less(t, time.Since(began), time.Second)
		r.completed([]journal.JobID{id}, `null`)
		r.completed([]journal.JobID{listen}, `{"got":7}`)
		require.Equal(t, journal.JobInterrupted, r.view(other).State)
	})
}

// The input of a further child may fail to evaluate although the first child's did not, because
// a branch that the join did not wait for has ended since. That is an error of the await, not a
// broken job (J1).
func TestAwaitRetryThatCannotBeOrdered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		reg := workers.New()
		workers.Handle(reg, "work", func(context.Context, any) (any, error) { return nil, workers.Fail(409, "as asked") })
		r := start(t, engine.Config{}, membus.Config{Seed: 1}, nil, reg)
		r.deploy(child)
		r.deploy(`
flow: parent
version: "1"
activities:
  start: {type: trigger}
  fast: {type: hook, input: 1}
  slow: {type: hook, sleep: 5s, output: {w: 1}}
  any: {type: hook, join: any, input: 1}
  ask: {type: await, flow: child, input: {n: "${ slow.skipped ? 1 : slow.output.v }"}, retry: {attempts: 3, backoff: 20s}}
transitions:
  start: [fast, slow]
  fast: [any]
  slow: [any]
  any: [ask]
`)
		r.failed(r.run("parent", "p", `{}`), journal.JobFailed, 500, "no such key: v")
	})
}
