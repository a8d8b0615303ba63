package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/dev/soak"
	"github.com/quipu-journal/quipu/workers"
)

func replaced(s, old, new string) string { return strings.ReplaceAll(s, old, new) }

// asked is what the handler of these tests is told to do.
type asked struct {
	Fail  string          `json:"fail"`  // fail for good with this message
	Retry bool            `json:"retry"` // fail the first attempt
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
		case a.Retry && workers.Info(ctx).Attempt == 1:
			return nil, errors.New("the first attempt fails")
		case a.Give != nil:
			return a.Give, nil
		}
		return in, nil
	})
	return reg
}

// every are flows that have each type of activity, what their jobs are told by
// signals, and what they give.
var every = []struct {
	name, yaml string
	input      any
	signals    []int // their codes; the payload is the number of the signal
	gives      string
}{
	{name: "a sleep", input: "50ms", gives: `{"by":"timer","x":"50ms"}`, yaml: `
flow: nap
version: "1"
output: {by: "${ nap.by }", x: "${ pass.output.x }"}
activities:
  start: {type: trigger}
  pass:  {type: hook, input: {x: "${ start.output }"}}
  nap:   {type: hook, sleep: "${ start.output }"}
transitions: {start: [pass], pass: [nap]}
`},
	{name: "a signal before a timer", signals: []int{collation.CodeOK}, gives: `{"by":"signal","got":0}`, yaml: `
flow: review
version: "1"
output: {by: "${ review.by }", got: "${ review.output }"}
activities:
  start:  {type: trigger}
  review: {type: hook, signal: told, key: "${ job.id }", sleep: 24h}
transitions: {start: [review]}
`},
	{name: "a hook that repeats", signals: []int{collation.CodePass, collation.CodePass, collation.CodeOK}, gives: `2`, yaml: `
flow: feed
version: "1"
output: "${ feed.output }"
activities:
  start: {type: trigger}
  feed:  {type: hook, signal: told, key: "${ job.id }", repeat: true}
  seen:  {type: worker, topic: do, input: {n: "${ feed.output }"}}
transitions: {start: [feed], feed: [seen]}
`},
	{name: "a cycle", gives: `{"n":4,"pass":3}`, yaml: `
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
  look: [{to: nap, when: "look.output.n < 4"}]
  nap: [again]
`},
	{name: "joins", gives: `{"sum":[1,null,0,3,"no quote"],"first":true}`, yaml: `
flow: quotes
version: "1"
output: {sum: "${ sum.output }", first: "${ first.skipped }"}
activities:
  start: {type: trigger}
  a: {type: worker, topic: do, input: {give: 1}}
  b: {type: worker, topic: do, input: {fail: "no quote"}}
  sorry: {type: worker, topic: do, input: {give: 0}}
  c: {type: worker, topic: do, input: {retry: true, give: 3}, retry: {backoff: 10ms}}
  never: {type: worker, topic: do}
  sum: {type: worker, topic: do, input: {give: ["${ a.output }", "${ b.output }", "${ sorry.output }", "${ c.output }", "${ b.error.message }"]}}
  first: {type: worker, topic: do, join: any}
transitions:
  start: [a, b, c, {to: never, when: "false"}]
  a: [sum]
  b: [sum, {to: sorry, on: error}]
  sorry: [sum]
  c: [sum]
  never: [first, {to: first, on: error}]
`},
	{
		name: "a list", input: []asked{{}, {Fail: "bad"}, {Retry: true}},
		gives: `[{"code":200,"output":0},{"code":500,"error":{"class":"fatal","code":500,"message":"bad"}},{"code":200,"output":2}]`, yaml: `
flow: items
version: "1"
output: "${ items.output }"
activities:
  start: {type: trigger}
  items: {type: worker, topic: do, each: start.output, parallel: 2, each_errors: collect, retry: {backoff: 10ms},
          input: {give: "${ index }", fail: "${ item.fail }", retry: "${ item.retry }"}}
transitions: {start: [items]}
`,
	},
	{name: "an interrupt of its own beside what is open", gives: `{"gone":"not_found","told":true}`, yaml: `
flow: stop
version: "1"
output: {gone: "${ other.error.class }", told: "${ tell.output.id != '' }"}
activities:
  start: {type: trigger}
  nap:   {type: hook, sleep: 24h}
  kid:   {type: await, flow: review}
  other: {type: interrupt, target: nobody}
  tell:  {type: signal, topic: told, key: nobody-yet, payload: 1}
  meet:  {type: hook}
  halt:  {type: interrupt, throw: false}
transitions:
  start: [nap, kid, other, tell]
  other: [meet, {to: meet, on: error}]
  tell: [meet]
  meet: [halt]
`},
	{name: "children", gives: `{"ok":{"by":"timer","x":"1ms"},"bad":"negative","none":404,"loose":"loose"}`, yaml: `
flow: parent
version: "1"
output: {ok: "${ ok.output }", bad: "${ bad.error.message }", none: "${ none.code }", loose: "${ loose.output.id }"}
activities:
  start: {type: trigger}
  ok:    {type: await, flow: nap, input: 1ms}
  bad:   {type: await, flow: refuse, retry: {attempts: 2, backoff: 10ms}}
  none:  {type: await, flow: nowhere}
  loose: {type: await, flow: nap, await: false, input: 1ms, id: loose}
  meet:  {type: worker, topic: do}
transitions:
  start: [ok, bad, none, loose]
  ok: [meet]
  bad: [{to: meet, on: error}]
  none: [{to: meet, on: error}]
  loose: [meet]
`},
}

const refuseFlow = `
flow: refuse
version: "1"
activities:
  start: {type: trigger}
  step:  {type: worker, topic: do, input: {fail: negative}}
transitions: {start: [step]}
`

// 1.11: each type of activity, once, on real servers. What becomes of them in any
// order, in every mode and under faults is the model's (TestC11AnyFlowEndsAsItReads).
func TestEveryActivity(t *testing.T) {
	inAMode(t, func(t *testing.T, e *env) {
		rt, _ := e.run(obedient())
		e.deploy(rt, refuseFlow)
		jobs := make([]quipu.Job, len(every))
		for i, x := range every {
			jobs[i] = e.start(rt, e.deploy(rt, x.yaml).Name(), x.name, x.input)
		}
		for _, x := range every {
			for n, code := range x.signals {
				_, err := rt.Signal(t.Context(), "told", x.name, n, quipu.Code(code))
				require.NoError(t, err)
			}
		}
		for i, x := range every {
			out, err := e.wait(rt, jobs[i])
			require.NoError(t, err, x.name)
			require.JSONEq(t, x.gives, string(out), x.name)
		}
		kid, err := rt.Find(t.Context(), "loose")
		require.NoError(t, err)
		_, err = e.wait(rt, kid)
		require.NoError(t, err)
		e.clean(rt)
	})
}

// 1.11: a long list, some at a time: as long as one may be in a soak.
func TestEachTenThousand(t *testing.T) {
	t.Parallel()
	n := soak.Times(500, 10_000)
	e := newEnv(t, false)
	rt, _ := e.run(obedient(), func(c *quipu.Config) { c.Concurrency = 256 })
	e.deploy(rt, replaced(`
flow: many
version: "1"
output: "${ size(items.output) }"
activities:
  start: {type: trigger}
  items: {type: worker, topic: do, each: start.output, parallel: PARALLEL, input: {give: "${ item }"}}
transitions: {start: [items]}
`, "PARALLEL", fmt.Sprint(n/10)))
	lines := make([]int, n)
	for i := range lines {
		lines[i] = i
	}
	job := e.start(rt, "many", "job-1", lines)
	out, err := e.wait(rt, job)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(n), string(out))
	require.Equal(t, fmt.Sprintf("2011%011d", n), e.ledger(rt, job, "items"))
	e.clean(rt)
}
