package differential

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

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
	`{type: hook, input: {v: 1}}`,
	`{type: await, flow: kid, input: {n: 1}, retry: {attempts: 2, backoff: 1s}}`,
	`{type: await, flow: kid, id: fixed, await: false, input: {n: 2}}`,
	`{type: await, flow: nobody, input: {n: 2}, within: 2m}`,
	`{type: signal, topic: bell, key: a, payload: told}`,
	`{type: signal, topic: bell, key: b, mode: all, code: 202, payload: 1}`,
	`{type: interrupt, code: 418, reason: drawn}`,
	`{type: interrupt, throw: false}`,
	`{type: interrupt, target: fixed, descend: true}`,
}

// define draws a flow and deploys it: each activity follows one or two that were
// drawn before.
func (p *pair) define(name string) {
	for {
		if f, err := flow.Parse("flow.yaml", []byte(p.text(name))); err == nil {
			p.deploy(f)
			p.main = append(p.main, f)
			return
		}
	}
}

func (p *pair) text(name string) string {
	var acts strings.Builder
	parents := []string{"start"}
	out := map[string][]string{}
	for i := range 1 + p.upTo("activities", 4) {
		act, a := pick(p, "activity", activities...), fmt.Sprint("a", i)
		if p.chance("join any", 20) {
			act = strings.TrimSuffix(act, "}") + ", join: any}"
		}
		fmt.Fprintf(&acts, "  %s: %s\n", a, act)
		for range 1 + p.upTo("parents", 3)/3 {
			to := a
			if p.chance("on error", 20) {
				to = "{to: " + a + ", on: error}"
			} else if p.chance("never", 10) {
				to = "{to: " + a + ", when: \"false\"}"
			}
			parent := pick(p, "parent", parents...)
			if !strings.Contains(strings.Join(out[parent], " "), a) {
				out[parent] = append(out[parent], to)
			}
		}
		if !strings.Contains(act, "interrupt") {
			parents = append(parents, a)
		}
	}
	if last := parents[len(parents)-1]; last != "start" && p.chance("cycle", 20) {
		acts.WriteString("  again: {type: cycle, to: pivot, max: 3, input: {v: 2}}\n  pivot: {type: hook, input: {v: 1}}\n")
		out["pivot"], out["start"] = out["start"], []string{"pivot"}
		out[last] = append(out[last], "again")
	}
	var links strings.Builder
	for _, from := range sorted(out) {
		fmt.Fprintf(&links, "  %s: [%s]\n", from, strings.Join(out[from], ", "))
	}
	expire := ""
	if p.chance("expires", 50) {
		expire = "expire: 1m\n"
	}
	text := fmt.Sprintf("flow: %s\nversion: \"1\"\n%soutput: {n: \"${ start.output.n }\"}\nactivities:\n  start: {type: trigger}\n%stransitions:\n%s",
		name, expire, acts.String(), links.String())
	p.Log(text)
	return text
}

func (p *pair) deploy(f *flow.Flow) {
	p.flows[f.Name()+" "+f.Version()] = f
	_, err := both(p, "deploy "+f.Name(), func(_ int, s store.Store) (bool, error) { return s.Deploy(p.ctx, ref(f), f.Canonical()) })
	require.NoError(p, err)
}

func ref(f *flow.Flow) journal.FlowRef {
	return journal.FlowRef{Name: f.Name(), Version: f.Version(), Digest: journal.Digest(f.Digest())}
}

func (p *pair) builtins() {
	f, err := flow.Parse("kid.yaml", []byte(kid))
	require.NoError(p, err)
	p.deploy(f)
	for _, topic := range []string{"t.work", "t.fun", "t.each", "t.kid"} {
		f, err := flow.Undo(topic)
		require.NoError(p, err)
		p.deploy(f)
	}
}
