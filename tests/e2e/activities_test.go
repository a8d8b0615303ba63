package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/workers"
)

// asked is what the handlers of these tests are told to do.
type asked struct {
	Fail  string          `json:"fail"`  // fail for good with this message
	Retry bool            `json:"retry"` // fail the first try
	Give  json.RawMessage `json:"give"`  // the output; null: the input
}

// obedient registers a handler that does what its input says.
func obedient() *workers.Registry {
	reg := workers.New()
	workers.HandleRaw(reg, "do", func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
		var a asked
		if err := json.Unmarshal(in, &a); err != nil {
			return nil, err
		}
		switch {
		case a.Fail != "":
			return nil, workers.Fatal(errors.New(a.Fail))
		case a.Retry && workers.Info(ctx).Try == 1:
			return nil, errors.New("the first try fails")
		case a.Give != nil:
			return a.Give, nil
		}
		return in, nil
	})
	return reg
}

// play runs one job of the first flow in both modes and hands what came of it to
// check; then everything must verify.
func play(t *testing.T, flows []string, input any, check func(e *env, rt *quipu.Runtime, job quipu.Job)) {
	t.Helper()
	bothModes(t, func(t *testing.T, e *env) {
		rt, _ := e.run(obedient())
		name := ""
		for i := len(flows) - 1; i >= 0; i-- {
			name = e.deploy(rt, flows[i]).Name()
		}
		job := e.start(rt, name, "job-1", input)
		check(e, rt, job)
		e.clean(rt)
	})
}

// gives waits for the job's end and compares its output.
func gives(e *env, rt *quipu.Runtime, job quipu.Job, want string) {
	e.t.Helper()
	out, err := e.wait(rt, job)
	require.NoError(e.t, err)
	require.JSONEq(e.t, want, string(out))
}

// fails waits for the job's end and compares its error.
func fails(e *env, rt *quipu.Runtime, job quipu.Job, state journal.JobState, code int, class string) {
	e.t.Helper()
	_, err := e.wait(rt, job)
	failed := &quipu.JobError{}
	require.ErrorAs(e.t, err, &failed)
	require.Equal(e.t, state, failed.State)
	require.Equal(e.t, code, failed.Code)
	require.Equal(e.t, class, failed.Cause.Class)
}

// waits waits until the job waits for n signals.
func waits(e *env, rt *quipu.Runtime, job quipu.Job, n int) {
	e.t.Helper()
	e.eventually("the job waits", func() bool { return len(e.view(rt, job).Waits) == n })
}

const sleepFlow = `
flow: nap
version: "1"
output: {by: "${ nap.by }", x: "${ pass.output.x }"}
activities:
  start: {type: trigger}
  pass:  {type: hook, input: {x: "${ start.output.x }"}}
  nap:   {type: hook, sleep: "${ start.output.for }"}
transitions: {start: [pass], pass: [nap]}
`

// 1.11: a hook that sleeps, after one that passes through. The timer is late by
// no more than a look of the sweeper and a message take.
func TestHookSleeps(t *testing.T) {
	t.Parallel()
	began := time.Now()
	play(t, []string{sleepFlow}, map[string]any{"x": 7, "for": "300ms"}, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		gives(e, rt, job, `{"by":"timer","x":7}`)
		require.GreaterOrEqual(e.t, time.Since(began), 300*time.Millisecond)
	})
}

const raceFlow = `
flow: review
version: "1"
output: {by: "${ review.by }", got: "${ review.output }", late: "${ late.skipped }"}
activities:
  start:  {type: trigger}
  review: {type: hook, signal: reviewed, key: "${ job.id }", sleep: "${ start.output.for }"}
  late:   {type: worker, topic: do}
transitions: {start: [review], review: [{to: late, when: 'review.by == "timer"'}]}
`

// P15: a race, won by the signal, by the timer, and by a signal that was there
// first (P13).
func TestP15HookRaces(t *testing.T) {
	t.Parallel()
	play(t, []string{raceFlow}, map[string]any{"for": "1h"}, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		waits(e, rt, job, 1)
		res, err := rt.Signal(e.t.Context(), "reviewed", job.Key, map[string]any{"ok": true}, quipu.IdempotencyKey("once"))
		require.NoError(e.t, err)
		require.Equal(e.t, quipu.SignalConsumed, res.State)
		gives(e, rt, job, `{"by":"signal","got":{"ok":true},"late":true}`)
		res, err = rt.Signal(e.t.Context(), "reviewed", job.Key, map[string]any{"ok": true}, quipu.IdempotencyKey("once"))
		require.NoError(e.t, err)
		require.True(e.t, res.Duplicate)
		require.Equal(e.t, quipu.SignalConsumed, res.State)
		late := e.start(rt, "review", "job-2", map[string]any{"for": "50ms"})
		gives(e, rt, late, `{"by":"timer","got":null,"late":false}`)
		res, err = rt.Signal(e.t.Context(), "reviewed", "job-3", "early")
		require.NoError(e.t, err)
		require.Equal(e.t, quipu.SignalKept, res.State)
		early := e.start(rt, "review", "job-3", map[string]any{"for": "1h"})
		gives(e, rt, early, `{"by":"signal","got":"early","late":true}`)
		refused := e.start(rt, "review", "job-4", map[string]any{"for": "1h"})
		waits(e, rt, refused, 1)
		_, err = rt.Signal(e.t.Context(), "reviewed", "job-4", nil, quipu.Code(422))
		require.NoError(e.t, err)
		fails(e, rt, refused, journal.JobFailed, 422, "signal")
	})
}

// P30: a hook that repeats takes 202 twice, each a pass of its own, until one
// with code 200 ends it.
func TestP30HookRepeats(t *testing.T) {
	t.Parallel()
	play(t, []string{`
flow: feed
version: "1"
output: {last: "${ seen.output.n }"}
activities:
  start: {type: trigger}
  feed:  {type: hook, signal: fed, key: "${ job.id }", repeat: true}
  seen:  {type: worker, topic: do, input: {n: "${ feed.output }"}}
transitions: {start: [feed], feed: [seen]}
`}, nil, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		for i := range 5 {
			_, err := rt.Signal(e.t.Context(), "fed", job.Key, i, quipu.Code(202))
			require.NoError(e.t, err)
		}
		e.eventually("five passes", func() bool { return e.ledger(rt, job, "feed") == "001100000000005" })
		_, err := rt.Signal(e.t.Context(), "fed", job.Key, 5)
		require.NoError(e.t, err)
		_, err = e.wait(rt, job)
		require.NoError(e.t, err)
		require.Equal(e.t, "201100000000006", e.ledger(rt, job, "feed"))
		var seen []string
		for _, i := range e.view(rt, job).Instances {
			if i.Key.Activity == "seen" {
				seen = append(seen, string(i.Key.DAD))
			}
		}
		require.ElementsMatch(e.t, []string{",0,0,0", ",0,1,0", ",0,2,0", ",0,3,0", ",0,4,0", ",0,5,0"}, seen, "C6")
	})
}

// 1.12: a loop by a cycle; each pass has outputs of its own.
func TestCycle(t *testing.T) {
	t.Parallel()
	play(t, []string{`
flow: poll
version: "1"
output: {n: "${ look.output.n }", pass: "${ pivot.output.at }"}
activities:
  start: {type: trigger}
  pivot: {type: hook, input: {at: 0}}
  look:  {type: worker, topic: do, input: {n: "${ pivot.output.at + 1 }"}}
  again: {type: cycle, to: pivot, max: 50, input: {at: "${ look.output.n }"}}
  nap:   {type: hook, sleep: 1ms}
transitions:
  start: [pivot]
  pivot: [look]
  look: [{to: nap, when: "look.output.n < start.output.stop"}]
  nap: [again]
`}, map[string]any{"stop": 4}, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		gives(e, rt, job, `{"n":4,"pass":3}`)
		require.Equal(e.t, "001100000000004", e.ledger(rt, job, "pivot"), "1.12")
		endless := e.start(rt, "poll", "job-2", map[string]any{"stop": 1000})
		fails(e, rt, endless, journal.JobFailed, 500, "cycle")
	})
}

// P10: branches of different depth into one activity, which runs once; a path
// that is skipped, and a join of joins.
func TestP10Joins(t *testing.T) {
	t.Parallel()
	play(t, []string{`
flow: quotes
version: "1"
output: {sum: "${ sum.output }", first: "${ first.skipped }", end: "${ end.output.sum }"}
activities:
  start: {type: trigger}
  a: {type: worker, topic: do, input: {give: 1}}
  b: {type: worker, topic: do, input: {fail: "no quote"}}
  sorry: {type: worker, topic: do, input: {give: 0}}
  c: {type: worker, topic: do, input: {retry: true, give: 3}, retry: {backoff: 10ms}}
  deep: {type: worker, topic: do, input: {give: "${ c.output }"}}
  never: {type: worker, topic: do}
  sum: {type: worker, topic: do, input: {give: ["${ a.output }", "${ b.output }", "${ sorry.output }", "${ deep.output }", "${ b.error.message }"]}}
  first: {type: worker, topic: do, join: any}
  end: {type: worker, topic: do, input: {sum: "${ sum.output }", first: "${ first.skipped }"}}
transitions:
  start: [a, b, c, {to: never, when: "false"}]
  a: [sum]
  b: [sum, {to: sorry, on: error}]
  sorry: [sum]
  c: [deep]
  deep: [sum]
  never: [first, {to: first, on: error}]
  sum: [end]
  first: [end]
`}, nil, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		gives(e, rt, job, `{"sum":[1,null,0,3,"no quote"],"first":true,"end":[1,null,0,3,"no quote"]}`)
		require.Equal(e.t, "201110400000001", e.ledger(rt, job, "sum"))
		require.Equal(e.t, "000000200000000", e.ledger(rt, job, "first"))
	})
}

const eachFlow = `
flow: items
version: "1"
output: "${ items.output }"
activities:
  start: {type: trigger}
  items: {type: worker, topic: do, each: start.output.lines, parallel: 3, each_errors: MODE, retry: {backoff: 10ms},
          input: {give: "${ index }", fail: "${ item.fail }", retry: "${ item.retry }"}}
transitions: {start: [items]}
`

// 1.11: each of 0, some and more than are under way at once; one fails a try; a
// failing one fails the activity after the others have ended.
func TestEach(t *testing.T) {
	t.Parallel()
	lines := func(n int, change func(i int, m map[string]any)) map[string]any {
		out := make([]map[string]any, n)
		for i := range out {
			out[i] = map[string]any{"fail": "", "retry": false}
			change(i, out[i])
		}
		return map[string]any{"lines": out}
	}
	quiet := func(int, map[string]any) {}
	failing := lines(7, func(i int, m map[string]any) {
		if i == 2 || i == 5 {
			m["fail"] = fmt.Sprintf("bad line %d", i)
		}
	})
	play(t, []string{mode("fail")}, lines(11, func(i int, m map[string]any) { m["retry"] = i%3 == 1 }), func(e *env, rt *quipu.Runtime, job quipu.Job) {
		gives(e, rt, job, `[0,1,2,3,4,5,6,7,8,9,10]`)
		gives(e, rt, e.start(rt, "items", "job-2", lines(0, quiet)), `[]`)
		broken := e.start(rt, "items", "job-3", failing)
		_, err := e.wait(rt, broken)
		require.ErrorContains(e.t, err, "element 2 of items: bad line 2")
		require.Equal(e.t, "201100000000007", e.ledger(rt, broken, "items"), "the others have ended")
	})
	play(t, []string{mode("collect")}, failing, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		out, err := e.wait(rt, job)
		require.NoError(e.t, err)
		var got []struct {
			Code   int
			Output any
			Error  struct{ Message string }
		}
		require.NoError(e.t, json.Unmarshal(out, &got))
		require.Len(e.t, got, 7)
		require.Equal(e.t, "bad line 5", got[5].Error.Message)
		require.EqualValues(e.t, 6, got[6].Output)
	})
}

func mode(errors string) string { return replaced(eachFlow, "MODE", errors) }

// E9: the bound of an activity: a hook that nobody signals ends with 408.
func TestHookWithin(t *testing.T) {
	t.Parallel()
	play(t, []string{`
flow: bound
version: "1"
activities:
  start: {type: trigger}
  hook:  {type: hook, signal: never, key: k, within: 100ms}
transitions: {start: [hook]}
`}, nil, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		fails(e, rt, job, journal.JobFailed, 408, "within")
		require.Empty(e.t, e.view(rt, job).Waits)
	})
}

// P29: a key that is used again after expiry: another job with other ids; what
// belonged to the first is gone.
func TestP29Expire(t *testing.T) {
	t.Parallel()
	play(t, []string{`
flow: short
version: "1"
expire: 1s
output: "${ start.output }"
activities:
  start: {type: trigger}
  step:  {type: worker, topic: do}
transitions: {start: [step]}
`}, 1, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		gives(e, rt, job, `1`)
		began := time.Now()
		_, err := rt.Start(e.t.Context(), "short", job.Key, 1)
		taken := &quipu.ErrAlreadyStarted{}
		require.ErrorAs(e.t, err, &taken)
		for e.view(rt, job).State != journal.JobExpired {
			_, err = rt.Store().Expire(e.t.Context(), 2) // in small parts, beside the role that does it in its own time
			require.NoError(e.t, err)
			require.Less(e.t, time.Since(began), patience)
			time.Sleep(10 * time.Millisecond) // between two looks
		}
		again := e.start(rt, "short", job.Key, 2)
		require.NotEqual(e.t, job.ID, again.ID, "C8")
		gives(e, rt, again, `2`)
		jobs, err := rt.Jobs(e.t.Context(), store.JobFilter{})
		require.NoError(e.t, err)
		require.Len(e.t, jobs, 1)
		require.EqualValues(e.t, 2, jobs[0].Generation)
	})
}

// 1.11: ten thousand elements of one list, a thousand at a time.
func TestEachTenThousand(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	rt, _ := e.run(obedient(), func(c *quipu.Config) { c.Concurrency = 256 })
	e.deploy(rt, `
flow: many
version: "1"
output: "${ size(items.output) }"
activities:
  start: {type: trigger}
  items: {type: worker, topic: do, each: start.output, parallel: 1000, input: {give: "${ item }"}}
transitions: {start: [items]}
`)
	lines := make([]int, 10_000)
	for i := range lines {
		lines[i] = i
	}
	job := e.start(rt, "many", "job-1", lines)
	gives(e, rt, job, `10000`)
	require.Equal(t, "201100000010000", e.ledger(rt, job, "items"))
	e.clean(rt)
}
