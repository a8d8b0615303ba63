package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/engine"
	"github.com/quipu-journal/quipu/journal"
	busmem "github.com/quipu-journal/quipu/transport/memory"
	"github.com/quipu-journal/quipu/workers"
)

// handlers echo, or fail if their input says so.
func handlers() *workers.Registry {
	reg := workers.New()
	workers.HandleRaw(reg, "echo", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil })
	workers.HandleRaw(reg, "fail", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
		var x struct{ Code int }
		if err := json.Unmarshal(in, &x); err != nil {
			return nil, err
		}
		if x.Code == 0 {
			return in, nil
		}
		return nil, workers.Fail(x.Code, "as asked")
	})
	workers.HandleDurable(reg, "trip.book", func(ctx context.Context, _ any) (any, error) {
		for _, name := range []string{"flight", "hotel"} {
			if err := workers.Compensate(ctx, name, func(context.Context) error { return nil }); err != nil {
				return nil, err
			}
		}
		return workers.Await[any](ctx, "confirmed", 0)
	})
	return reg
}

// scenario runs in every mode: over a faultless bus, over one that loses, doubles and reorders,
// and over a store that fails before or after it has done a call (C10, C11, T1, J4).
func scenario(t *testing.T, run func(r *rig)) {
	t.Helper()
	t.Parallel()
	for name, c := range map[string]struct {
		bus   busmem.Config
		fault func() fault
	}{
		"calm":   {busmem.Config{Seed: 1}, func() fault { return nil }},
		"lossy":  {busmem.Config{Seed: 2, Loss: 0.2, Duplicate: 0.3, Reorder: 0.3}, func() fault { return nil }},
		"faulty": {busmem.Config{Seed: 3}, faulty},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, cfg engine.Config) {
				r := start(t, cfg, c.bus, c.fault(), handlers())
				run(r)
				require.Empty(t, r.letters())
				r.verify()
			})
		})
	}
}

// faulty fails one of five calls of an engine or a worker, before or after it was done. Calls
// of the test itself do not fail.
func faulty() fault {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(3, 3))
	return func(op string) error {
		switch name, _, _ := strings.Cut(op, "."); name {
		case "start", "signal", "interrupt", "deploy", "activate":
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if dice.IntN(5) == 0 {
			return errors.New("no route to host")
		}
		return nil
	}
}

// output waits for the job's end, and requires that it completed with the output.
func (r *rig) output(id journal.JobID, output string) {
	r.t.Helper()
	r.ended([]journal.JobID{id})
	v := r.view(id)
	require.Equal(r.t, journal.JobCompleted, v.State, "%v", v.Error)
	require.JSONEq(r.t, output, string(v.Output))
}

// failed waits for the job's end, and requires that it ended in that way.
func (r *rig) failed(id journal.JobID, state journal.JobState, code int, message string) {
	r.t.Helper()
	r.ended([]journal.JobID{id})
	v := r.view(id)
	require.Equal(r.t, state, v.State)
	require.Equal(r.t, code, v.Code, "%v", v.Error)
	require.Contains(r.t, v.Error.Message, message)
}

const review = `
flow: review
version: "1"
output: {by: "${ wait.by }", ok: "${ wait.output }", code: "${ wait.code }"}
activities:
  start: {type: trigger}
  wait: {type: hook, signal: order.reviewed, key: "${ job.id }", sleep: 5m}
transitions: {start: [wait]}
`

// E13: no order of the signal and the wait loses the signal (P13).
func TestP13SignalBeforeAndAfterItsWait(t *testing.T) {
	scenario(t, func(r *rig) {
		r.deploy(review)
		done := r.signal("order.reviewed", "early", `{"n":1}`, 200, false, "")
		require.EqualValues(r.t, "kept", done.State)
		early, late, never := r.run("review", "early", `{}`), r.run("review", "late", `{}`), r.run("review", "never", `{}`)
		r.waits(late)
		done = r.signal("order.reviewed", "late", `{"n":2}`, 200, false, "")
		require.EqualValues(r.t, "consumed", done.State)
		again := r.signal("order.reviewed", "late", `{"n":3}`, 200, false, "")
		require.True(r.t, again.Duplicate)
		r.output(early, `{"by":"signal","ok":{"n":1},"code":200}`)
		r.output(late, `{"by":"signal","ok":{"n":2},"code":200}`)
		r.output(never, `{"by":"timer","ok":null,"code":200}`)
	})
}

// P15: a timer and a signal at the same moment: one of them is accepted.
func TestP15TimerAndSignalAtTheSameMoment(t *testing.T) {
	scenario(t, func(r *rig) {
		r.deploy(`
flow: race
version: "1"
output: {by: "${ wait.by }", n: "${ after.output.by }"}
activities:
  start: {type: trigger}
  wait: {type: hook, signal: go, key: "${ job.id }", sleep: 10s}
  after: {type: worker, topic: echo, input: {by: "${ wait.by }"}}
transitions: {start: [wait], wait: [after]}
`)
		for n := range 12 {
			key := fmt.Sprint("k", n)
			id := r.run("race", key, `{}`)
			r.waits(id)
			due := time.UnixMicro(int64(r.view(id).Waits[0].Since)).Add(10 * time.Second)
			time.Sleep(time.Until(due) + time.Duration(n-4)*25*time.Millisecond) // the bubble's clock
			done := r.signal("go", key, `{}`, 200, false, "")
			r.ended([]journal.JobID{id})
			v := r.view(id)
			require.Equal(r.t, journal.JobCompleted, v.State)
			var out struct{ By, N string }
			require.NoError(r.t, json.Unmarshal(v.Output, &out))
			require.Equal(r.t, out.By, out.N)
			if out.By == "timer" {
				require.NotEqualValues(r.t, "consumed", done.State)
			} else {
				require.EqualValues(r.t, "consumed", done.State)
			}
			accepted := 0
			for _, e := range r.entries(id) {
				if e.Activity == "wait" && e.Kind == journal.KindLeg2 && e.Response != nil {
					accepted++
				}
			}
			require.Equal(r.t, 1, accepted, "one wake-up is accepted")
		}
	})
}

// P30: a hook that gets 202 twice takes each signal as a pass of its own (1.4), and its
// successors run in each pass.
func TestP30EverySignalOfARepeatingHookIsAPass(t *testing.T) {
	scenario(t, func(r *rig) {
		r.deploy(`
flow: passes
version: "1"
output: {last: "${ ticks.output.n }"}
activities:
  start: {type: trigger}
  ticks: {type: hook, signal: tick, key: "${ job.id }", repeat: true}
  work: {type: worker, topic: echo, input: {n: "${ ticks.output.n }"}}
transitions: {start: [ticks], ticks: [work]}
`)
		id := r.run("passes", "k", `{}`)
		r.waits(id)
		for n := 1; n <= 3; n++ {
			done := r.signal("tick", "k", fmt.Sprintf(`{"n":%d}`, n), 202, false, fmt.Sprint(n))
			require.EqualValues(r.t, "consumed", done.State)
		}
		r.signal("tick", "k", `{"n":4}`, 200, false, "end")
		r.output(id, `{"last":4}`)
		ran := map[string]bool{}
		for _, e := range r.entries(id) {
			if e.Activity == "work" && e.Response != nil {
				require.False(r.t, ran[e.DAD], "a pass ran twice")
				ran[e.DAD] = true
			}
		}
		require.Len(r.t, ran, 4)
	})
}

// P10, 1.10: a diamond's join runs once, and a branch that is not taken is skipped.
func TestP10DiamondMeetsOnce(t *testing.T) {
	scenario(t, func(r *rig) {
		r.deploy(`
flow: diamond
version: "1"
output: {n: "${ meet.output.n }", skipped: "${ c.skipped }"}
activities:
  start: {type: trigger}
  a: {type: worker, topic: echo, input: {n: 1}}
  b: {type: worker, topic: echo, input: {n: 2}}
  c: {type: worker, topic: echo, input: {n: 3}}
  meet: {type: worker, topic: echo, input: {n: "${ a.output.n + b.output.n }"}}
transitions:
  start: [a, b, {to: c, when: "false"}]
  a: [meet]
  b: [meet]
  c: [meet]
`)
		id := r.run("diamond", "k", `{}`)
		r.output(id, `{"n":3,"skipped":true}`)
		requests := 0
		for _, e := range r.entries(id) {
			for _, d := range e.Dispatched {
				if d.Activity == "meet" && d.Kind == journal.MessageRequest {
					requests++
				}
			}
		}
		require.Equal(r.t, 1, requests)
	})
}
