package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
	"github.com/quipu-journal/quipu/journal"
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

// example is a flow of testdata/activities.yaml.
type example struct {
	Name    string
	Input   any
	Signals []int
	Gives   string
	Flow    string
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
		e.Deploy(rt, refuseFlow)
		text, err := os.ReadFile("testdata/activities.yaml")
		require.NoError(t, err)
		var every []example
		require.NoError(t, yaml.Unmarshal(text, &every))
		jobs := make([]quipu.Job, len(every))
		for i, x := range every {
			jobs[i] = e.Start(rt, e.Deploy(rt, x.Flow).Name(), x.Name, x.Input)
		}
		for _, x := range every {
			for n, code := range x.Signals {
				_, err := rt.Signal(t.Context(), "told", x.Name, n, quipu.Code(code))
				require.NoError(t, err)
			}
		}
		for i, x := range every {
			out, err := e.Wait(rt, jobs[i])
			require.NoError(t, err, x.Name)
			require.JSONEq(t, x.Gives, string(out), x.Name)
		}
		kid, err := rt.Find(t.Context(), "loose")
		require.NoError(t, err)
		_, err = e.Wait(rt, kid)
		require.NoError(t, err)
		e.Verify()
	})
}

// 1.11: a long list, some at a time: as long as one may be in a soak.
func TestEachTenThousand(t *testing.T) {
	t.Parallel()
	n := soak.Times(500, 10_000)
	e := newEnv(t, false)
	rt, _ := e.run(obedient(), func(c *quipu.Config) { c.Concurrency = 256 })
	e.Deploy(rt, replaced(`
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
	job := e.Start(rt, "many", "job-1", lines)
	out, err := e.Wait(rt, job)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(n), string(out))
	require.Equal(t, fmt.Sprintf("2011%011d", n), e.ledger(rt, job, "items"))
	e.Verify()
}

// 1.11: a flow, or a function, that awaits itself comes to an end, and whoever asked is told why.
func TestAwaitingItselfHasALimit(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	reg := obedient()
	workers.HandleDurable(reg, "nest", func(ctx context.Context, n int) (int, error) {
		return workers.Child[int](ctx, "next", "nest", n+1)
	})
	rt, _ := e.run(reg)
	for _, flow := range []string{`
flow: deep
version: "1"
activities:
  start: {type: trigger}
  again: {type: await, flow: deep, input: {n: "${ start.output }"}}
transitions: {start: [again]}
`, `
flow: nest
version: "1"
activities:
  start: {type: trigger}
  again: {type: worker, topic: nest, input: "${ start.output }"}
transitions: {start: [again]}
`} {
		f := e.Deploy(rt, flow)
		_, err := e.Wait(rt, e.Start(rt, f.Name(), f.Name()+"-1", 1))
		require.ErrorContains(t, err, "101 jobs would wait above a job of flow \""+f.Name()+"\": at most 100 may")
		page, err := rt.Jobs(t.Context(), quipu.JobFilter{Flow: f.Name(), Limit: 200})
		require.NoError(t, err)
		require.Equal(t, 1+journal.MaxDepth, len(page.Jobs))
	}
	e.Verify()
}
