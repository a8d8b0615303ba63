package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

func replaced(s, old, new string) string { return strings.ReplaceAll(s, old, new) }

const childFlow = `
flow: invoice
version: "1"
input: {type: object, properties: {total: {type: number}}}
output: {id: "${ step.output.n }", key: "${ job.id }"}
activities:
  start: {type: trigger}
  step:  {type: worker, topic: do, input: {n: "${ start.output.total }", fail: "${ start.output.total < 0 ? 'negative' : '' }"}}
transitions: {start: [step]}
`

// 1.11: the outcome of the child is the response of the await: its output, its
// error, a refusal; and a retry starts another child (P6).
func TestP6Await(t *testing.T) {
	t.Parallel()
	play(t, []string{`
flow: parent
version: "1"
output: {ok: "${ ok.output.id }", bad: "${ bad.error.message }", tries: "${ bad.code }", none: "${ none.code }", refused: "${ refused.code }", loose: "${ loose.output.id }"}
activities:
  start: {type: trigger}
  ok:  {type: await, flow: invoice, input: {total: 5}, id: "inv-${ job.id }"}
  bad: {type: await, flow: invoice, input: {total: -5}, retry: {attempts: 3, backoff: 20ms}}
  none: {type: await, flow: nowhere}
  refused: {type: await, flow: invoice, input: {total: "text"}}
  loose: {type: await, flow: invoice, await: false, input: {total: 6}, id: "loose-${ job.id }"}
  meet: {type: worker, topic: do}
transitions:
  start: [ok, bad, none, refused, loose]
  ok: [meet]
  bad: [{to: meet, on: error}]
  none: [{to: meet, on: error}]
  refused: [{to: meet, on: error}]
  loose: [meet]
`, childFlow}, nil, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		gives(e, rt, job, `{"ok":5,"bad":"negative","tries":500,"none":404,"refused":400,"loose":"loose-job-1"}`)
		jobs, err := rt.Jobs(e.t.Context(), store.JobFilter{Flow: "invoice"})
		require.NoError(e.t, err)
		require.Len(e.t, jobs, 5, "one, three tries, one that is not awaited")
		loose, err := rt.Find(e.t.Context(), "loose-job-1")
		require.NoError(e.t, err)
		gives(e, rt, loose, `{"id":6,"key":"loose-job-1"}`)
		taken := e.start(rt, "parent", "job-2", nil)
		gives(e, rt, taken, `{"ok":5,"bad":"negative","tries":500,"none":404,"refused":400,"loose":"loose-job-2"}`)
	})
}

// 1.11: a key that belongs to another job is refused with 409.
func TestAwaitForeignKey(t *testing.T) {
	t.Parallel()
	play(t, []string{`
flow: parent
version: "1"
output: "${ kid.code }"
activities:
  start: {type: trigger}
  kid:   {type: await, flow: invoice, id: mine, input: {total: 1}}
  meet:  {type: worker, topic: do}
transitions: {start: [kid], kid: [{to: meet, on: error}, {to: meet}]}
`, childFlow}, nil, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		gives(e, rt, job, `200`)
		gives(e, rt, e.start(rt, "parent", "job-2", nil), `409`)
	})
}

const waitingFlow = `
flow: waiting
version: "1"
activities:
  start: {type: trigger}
  hook:  {type: hook, signal: go, key: "${ job.id }"}
transitions: {start: [hook]}
`

// C15: an interrupt from outside closes a job with what is open of it; with
// descend also the children that it awaits, otherwise they go on.
func TestC15Interrupt(t *testing.T) {
	t.Parallel()
	play(t, []string{`
flow: parent
version: "1"
activities:
  start: {type: trigger}
  kid:   {type: await, flow: waiting, id: "kid-${ job.id }"}
  nap:   {type: hook, sleep: 24h}
  hook:  {type: hook, signal: go, key: "${ job.id }"}
transitions: {start: [kid, nap, hook]}
`, waitingFlow}, nil, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		kid := func(key string) (found quipu.Job) {
			e.eventually("the child waits", func() bool {
				var err error
				found, err = rt.Find(e.t.Context(), key)
				return err == nil && len(e.view(rt, found).Waits) == 1
			})
			return found
		}
		first := kid("kid-job-1")
		_, err := rt.Interrupt(e.t.Context(), job.Key, quipu.Reason("enough"), quipu.Code(451), quipu.Descend(true))
		require.NoError(e.t, err)
		fails(e, rt, job, journal.JobInterrupted, 451, "interrupted")
		fails(e, rt, first, journal.JobInterrupted, 451, "interrupted")
		require.Empty(e.t, e.view(rt, job).Waits)
		other := e.start(rt, "parent", "job-2", nil)
		second := kid("kid-job-2")
		_, err = rt.Interrupt(e.t.Context(), other.Key, quipu.Throw(false))
		require.NoError(e.t, err)
		gives(e, rt, other, `null`)
		_, err = rt.Signal(e.t.Context(), "go", second.Key, nil)
		require.NoError(e.t, err)
		gives(e, rt, second, `null`)
		_, err = rt.Interrupt(e.t.Context(), "nobody")
		require.ErrorIs(e.t, err, quipu.ErrNotFound)
	})
}

// P8, P23: an interrupt of its own job, as the only obligation and beside open
// branches; of another job by its key.
func TestP8P23OwnInterrupt(t *testing.T) {
	t.Parallel()
	play(t, []string{`
flow: stop
version: "1"
output: {gone: "${ other.error.class }", told: "${ tell.output.id != '' }"}
activities:
  start: {type: trigger}
  nap:   {type: hook, sleep: 24h}
  other: {type: interrupt, target: "${ start.output.victim }", reason: "by ${ job.id }"}
  tell:  {type: signal, topic: go, key: nobody-yet, payload: 1}
  meet:  {type: hook}
  halt:  {type: interrupt, throw: false}
transitions:
  start: [nap, other, tell]
  other: [meet, {to: meet, on: error}]
  tell: [meet]
  meet: [halt]
`, waitingFlow}, map[string]any{"victim": "nobody"}, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		gives(e, rt, job, `{"gone":"not_found","told":true}`)
		victim := e.start(rt, "waiting", "victim", nil)
		waits(e, rt, victim, 1)
		e.start(rt, "stop", "job-2", map[string]any{"victim": "victim"})
		fails(e, rt, victim, journal.JobInterrupted, 410, "interrupted")
		late := e.start(rt, "waiting", "nobody-yet", nil)
		gives(e, rt, late, `null`) // the signal was kept, once: the second job's is kept, too
	})
}

// 1.11: a signal of mode all reaches the waits that are open, and is not kept.
func TestSignalAll(t *testing.T) {
	t.Parallel()
	play(t, []string{`
flow: tell
version: "1"
activities:
  start: {type: trigger}
  tell:  {type: signal, mode: all, topic: go, key: crowd, payload: {hello: "${ job.id }"}}
transitions: {start: [tell]}
`, replaced(waitingFlow, `"${ job.id }"`, "crowd")}, nil, func(e *env, rt *quipu.Runtime, job quipu.Job) {
		gives(e, rt, job, `null`)
		var crowd []quipu.Job
		for _, key := range []string{"a", "b", "c"} {
			crowd = append(crowd, e.start(rt, "waiting", key, nil))
			waits(e, rt, crowd[len(crowd)-1], 1)
		}
		e.start(rt, "tell", "job-2", nil)
		for _, j := range crowd {
			gives(e, rt, j, `null`)
		}
		res, err := rt.SignalAll(e.t.Context(), "go", "crowd", nil)
		require.NoError(e.t, err)
		require.Equal(e.t, quipu.SignalMissed, res.State)
	})
}
