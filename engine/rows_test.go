package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/engine"
	"github.com/quipu-journal/quipu/journal"
	busmem "github.com/quipu-journal/quipu/transport/memory"
)

// T2: what a plan sends, to its own job and to others, is published right after the commit. No
// step here waits for the sweeper, which does not look.
func TestT2NothingWaitsForTheSweeper(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, cfg engine.Config) {
		cfg.Sweep, cfg.Resend = 24*time.Hour, 24*time.Hour
		r := start(t, cfg, busmem.Config{Seed: 1}, nil, handlers())
		defer r.close()
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
  items: {type: worker, topic: echo, each: "[1, 2, 3, 4, 5]", parallel: 1, input: "${ item }"}
  ask: {type: await, flow: child, input: {n: 1, code: 0}}
  send: {type: await, await: false, flow: child, input: {n: 1, code: 0}}
  no: {type: await, flow: nobody}
  tell: {type: signal, topic: news, key: k, payload: {n: 7}}
  pivot: {type: hook, input: 0}
  again: {type: cycle, to: pivot, input: "${ pivot.output + 1 }"}
  stop: {type: interrupt, target: other, reason: enough}
  own: {type: interrupt, throw: false}
transitions:
  start: [items]
  items: [ask]
  ask: [send]
  send: [no]
  no: [{to: tell, on: error}]
  tell: [pivot]
  pivot: [{to: again, when: "pivot.output < 3"}, {to: stop, when: "pivot.output == 3"}]
  stop: [own]
`)
		began := time.Now()
		listen, other := r.publish("listen", "listen", `{}`), r.publish("listen", "other", `{}`)
		synctest.Wait()
		id := r.publish("all", "all", `{}`)
		synctest.Wait()
		require.Less(t, time.Since(began), time.Second)
		r.completed([]journal.JobID{id}, `null`)
		r.completed([]journal.JobID{listen}, `{"got":7}`)
		require.Equal(t, journal.JobInterrupted, r.view(other).State)
	})
}

// Timers are sent when due, however rarely the sweeper looks without one (T2, W9).
func TestT2TimersAreInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, engine.Config{Sweep: time.Hour}, busmem.Config{Seed: 1}, nil, handlers())
		defer r.close()
		synctest.Wait() // the first look is over
		r.deploy(`
flow: nap
version: "1"
activities:
  start: {type: trigger}
  nap: {type: hook, sleep: "${ start.output.sleep }"}
transitions: {start: [nap]}
`)
		var ids []journal.JobID
		for n := range 200 {
			ids = append(ids, r.publish("nap", fmt.Sprint(n), fmt.Sprintf(`{"sleep":"%dms"}`, 100+37*n)))
		}
		r.ended(ids)
		worst := time.Duration(0)
		for n, id := range ids {
			v := r.view(id)
			took := time.Duration(v.Closed-v.Started) * time.Microsecond
			worst = max(worst, took-time.Duration(100+37*n)*time.Millisecond)
		}
		t.Logf("the latest of %d timers was %s late", len(ids), worst)
		require.GreaterOrEqual(t, worst, time.Duration(0))
		require.LessOrEqual(t, worst, 25*time.Millisecond)
	})
}
