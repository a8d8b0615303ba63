package differential

import (
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/tests/rig"
)

// upTo draws 0 to n.
func (w *twin) upTo(label string, n int) int { return rig.Evenly(w.T, label, n) }

// chance is true in so many of a hundred draws; it shrinks to false.
func (w *twin) chance(label string, percent int) bool { return w.upTo(label, 99) >= 100-percent }

func pick[T any](w *twin, label string, of ...T) T { return of[w.upTo(label, len(of)-1)] }

// recent draws one of a list, mostly a late one; false where there is none.
func recent[T any](w *twin, label string, of []T) (v T, ok bool) {
	if len(of) == 0 {
		return v, false
	}
	if n := 5; len(of) > n && w.chance("recent", 70) {
		of = of[len(of)-n:]
	}
	return of[w.upTo(label, len(of)-1)], true
}

// The flows: their jobs have every kind of row, wait and instance. The input is {"n": …}; the jobs
// of kid are children.
var flows = []string{`
flow: kid
version: "1"
expire: 1h
output: {got: "${ work.output }"}
activities:
  start: {type: trigger}
  work: {type: worker, topic: t.kid, input: {n: "${ start.output }"}}
transitions:
  start: [work]
`, `
flow: work
version: "1"
expire: 1m
output: {n: "${ start.output.n }"}
activities:
  start: {type: trigger}
  pivot: {type: hook, input: {v: 1}}
  work: {type: worker, topic: t.work, input: {n: "${ start.output.n }"}, retry: {attempts: 3, backoff: 1s, jitter: 0}}
  fun: {type: worker, topic: t.fun, within: 2m, timeout: 10s, input: {n: "${ start.output.n }"}}
  each: {type: worker, topic: t.each, each: "[1, 2, 3]", parallel: 2, each_errors: collect}
  any: {type: hook, input: {v: 1}, join: any}
  again: {type: cycle, to: pivot, max: 3, input: {v: 2}}
transitions:
  start: [pivot]
  pivot: [work, fun, each]
  work: [any, {to: again, on: error}]
  fun: [any]
  each: [{to: any, when: "false"}]
  any: [again]
`, `
flow: wait
version: "1"
activities:
  start: {type: trigger}
  nap: {type: hook, sleep: 30s}
  bell: {type: hook, signal: bell, key: a, sleep: 1m, expires: 1h}
  ring: {type: hook, signal: bell, key: b, repeat: true}
  tell: {type: signal, topic: bell, key: a, payload: told}
  call: {type: signal, topic: bell, key: b, mode: all, code: 202, payload: 1}
  kid: {type: await, flow: kid, input: {n: 1}, retry: {attempts: 2, backoff: 1s}}
  fixed: {type: await, flow: kid, id: fixed, await: false, input: {n: 2}}
  none: {type: await, flow: nobody, input: {n: 2}, within: 2m}
  fun: {type: worker, topic: t.fun, input: {n: "${ start.output.n }"}}
  stop: {type: interrupt, code: 418, reason: drawn}
  others: {type: interrupt, target: fixed, descend: true}
transitions:
  start: [nap, bell, ring, kid, fixed, fun]
  nap: [tell, call]
  kid: [{to: none, on: error}]
  bell: [others]
  fun: [{to: stop, on: error}]
`}

func (w *twin) deploy(f *flow.Flow, err error) {
	require.NoError(w, err)
	w.flows[f.Name()+" "+f.Version()] = f
	_, err = both(w, "deploy "+f.Name(), func(s store.Store) (bool, error) { return s.Deploy(w.ctx, ref(f), f.Canonical(), false) })
	require.NoError(w, err)
}

func ref(f *flow.Flow) journal.FlowRef {
	return journal.FlowRef{Name: f.Name(), Version: f.Version(), Digest: journal.Digest(f.Digest())}
}
