package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

// kid is the flow that awaits and functions start.
const kid = `
flow: kid
version: "1"
expire: 1h
output: {got: "${ work.output }"}
activities:
  start: {type: trigger}
  work: {type: worker, topic: t.kid, input: {n: "${ start.output }"}}
transitions:
  start: [work]
`

// activities are what drawn flows are made of. The input of a job is {"n": …}.
var activities = []string{
	`{type: worker, topic: t.work, input: {n: "${ start.output.n }"}, retry: {attempts: 3, backoff: 1s, jitter: 0}}`,
	`{type: worker, topic: t.fun, within: 2m, timeout: 10s, input: {n: "${ start.output.n }"}}`,
	`{type: worker, topic: t.each, each: "[1, 2, 3]", parallel: 2, each_errors: collect}`,
	`{type: hook, sleep: 30s}`,
	`{type: hook, signal: bell, key: a, sleep: 1m, expires: 1h}`,
	`{type: hook, signal: bell, key: b, repeat: true}`,
	`{type: hook, input: {v: 1}, join: any}`,
	`{type: await, flow: kid, input: {n: 1}, retry: {attempts: 2, backoff: 1s}}`,
	`{type: await, flow: kid, id: fixed, await: false, input: {n: 2}}`,
	`{type: await, flow: nobody, input: {n: 2}, within: 2m}`,
	`{type: signal, topic: bell, key: a, payload: told}`,
	`{type: signal, topic: bell, key: b, mode: all, code: 202, payload: 1}`,
	`{type: interrupt, code: 418, reason: drawn}`,
	`{type: interrupt, target: fixed, descend: true}`,
}

// define draws a flow and deploys it: each activity follows one or two that were drawn
// before.
func (w *twin) define(name string) {
	for {
		if f, err := flow.Parse("flow.yaml", []byte(w.text(name))); err == nil {
			w.deploy(f)
			w.main = append(w.main, f)
			return
		}
	}
}

func (w *twin) text(name string) string {
	var acts, links strings.Builder
	parents, out := []string{"start"}, map[string][]string{}
	for i := range 1 + w.upTo("activities", 4) {
		act, a := pick(w, "activity", activities...), fmt.Sprint("a", i)
		if w.chance("worker", 30) {
			act = pick(w, "of a worker", activities[:3]...)
		}
		fmt.Fprintf(&acts, "  %s: %s\n", a, act)
		to := pick(w, "to", a, a, a, a, a, a, "{to: "+a+", on: error}", "{to: "+a+", when: \"false\"}")
		for range 1 + w.upTo("parents", 3)/3 {
			if parent := pick(w, "parent", parents...); !slices.Contains(out[parent], to) {
				out[parent] = append(out[parent], to)
			}
		}
		if !strings.Contains(act, "interrupt") {
			parents = append(parents, a)
		}
	}
	if last := parents[len(parents)-1]; last != "start" && w.chance("cycle", 20) {
		acts.WriteString("  again: {type: cycle, to: pivot, max: 3, input: {v: 2}}\n  pivot: {type: hook, input: {v: 1}}\n")
		out["pivot"], out["start"] = out["start"], []string{"pivot"}
		out[last] = append(out[last], "again")
	}
	for _, from := range slices.Sorted(maps.Keys(out)) {
		fmt.Fprintf(&links, "  %s: [%s]\n", from, strings.Join(out[from], ", "))
	}
	text := fmt.Sprintf("flow: %s\nversion: \"1\"\n%soutput: {n: \"${ start.output.n }\"}\nactivities:\n  start: {type: trigger}\n%stransitions:\n%s",
		name, pick(w, "expire", "", "expire: 1m\n"), acts.String(), links.String())
	w.Log(text)
	return text
}

func (w *twin) deploy(f *flow.Flow) {
	w.flows[f.Name()+" "+f.Version()] = f
	_, err := both(w, "deploy "+f.Name(), func(s store.Store) (bool, error) { return s.Deploy(w.ctx, ref(f), f.Canonical(), false) })
	require.NoError(w, err)
}

func ref(f *flow.Flow) journal.FlowRef {
	return journal.FlowRef{Name: f.Name(), Version: f.Version(), Digest: journal.Digest(f.Digest())}
}
