package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// over costs more than any step may, and near most of what one may.
const (
	over = "start.output.l.all(a, !start.output.s.contains('b'))"
	near = "start.output.n.all(a, !start.output.s.contains('b'))"
)

// budgets are flows with expressions in one place each, and how their jobs end: with an output, or
// failed by the expressions.
var budgets = map[string]struct{ flow, output string }{
	"input":  {"  work: {type: worker, topic: t, input: {x: \"${ OVER }\"}}\ntransitions: {start: [work]}", ""},
	"each":   {"  work: {type: worker, topic: t, each: \"${ [1, 2, 3, 4] }\", input: {x: \"${ NEAR }\"}}\ntransitions: {start: [work]}", ""},
	"output": {"  work: {type: worker, topic: t, output: {x: \"${ OVER }\"}}\ntransitions: {start: [work]}", ""},
	"end":    {"  work: {type: worker, topic: t}\noutput: {x: \"${ OVER }\"}\ntransitions: {start: [work]}", ""},
	// Of each place that has a budget of its own, together more than three.
	"places": {"  work: {type: worker, topic: t, input: {x: \"${ NEAR }\"}, output: {x: \"${ NEAR }\"}}\n" +
		"  more: {type: worker, topic: t, input: {x: \"${ NEAR }\"}}\n  both: {type: worker, topic: t, input: {x: \"${ NEAR }\"}}\n" +
		"output: {x: \"${ NEAR }\"}\n" +
		"transitions: {start: [{to: work, when: \"${ NEAR }\"}], work: [{to: more, when: \"${ NEAR }\"}, both]}", `{"x":true}`},
	// What fails a condition has no part in the budget of the conditions for errors.
	"errors": {"  work: {type: worker, topic: t}\n  more: {type: worker, topic: t}\n  other: {type: worker, topic: t}\n" +
		"transitions: {start: [work], work: [{to: more, when: \"${ OVER }\"}, {to: other, on: error, when: \"${ NEAR }\"}]}", "null"},
}

// E11, C11, V17: what costs too much fails as `expression`, in every mode alike, and the verifier
// counts the same.
func TestE11TheBudgetOfAStepIsTheSameInEveryMode(t *testing.T) {
	t.Parallel()
	n := nearly(t)
	input := fmt.Sprintf(`{"l":[%s],"n":[%s],"s":%q}`, ones(5000), ones(n), text)
	for name, x := range budgets {
		for mode, cfg := range map[string]engine.Config{"hot and folded": {}, "cold and stepwise": {HotBytes: -1, Stepwise: true}} {
			t.Run(name+" "+mode, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					reg := workers.New()
					workers.Handle(reg, "t", func(context.Context, any) (any, error) { return nil, nil })
					r := start(t, cfg, membus.Config{}, nil, reg)
					r.deploy("flow: f\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n" +
						strings.NewReplacer("OVER", over, "NEAR", near).Replace(x.flow) + "\n")
					id := r.publish("f", "k", input)
					r.ended([]journal.JobID{id})
					v := r.view(id)
					if x.output != "" {
						require.Equal(t, journal.JobCompleted, v.State, "%v", v.Error)
						require.Equal(t, x.output, string(v.Output))
					} else {
						require.Equal(t, []any{journal.JobFailed, 500, collation.ReasonExpression},
							[]any{v.State, v.Code, v.Error.Class})
						require.Contains(t, v.Error.Message, fmt.Sprint(flow.MaxStepCost))
					}
					require.Empty(t, v.Dead)
					r.proved(id)
				})
			})
		}
	}
}

// text is one whose search costs many units and little time.
var text = strings.Repeat("a", 100_000)

func ones(n int) string { return strings.TrimSuffix(strings.Repeat("1,", n), ",") }

// priced is a scope in which only the trigger has a result.
type priced struct {
	flow.Scope
	input  string
	budget *flow.Budget
}

func (p priced) Budget() *flow.Budget { return p.budget }
func (p priced) Result(string) (flow.Result, bool) {
	return flow.Result{Ran: true, Code: 200, Output: []byte(p.input)}, true
}

// nearly is for how many numbers near costs most of what a step may cost, so that two of them are
// over it.
func nearly(t *testing.T) int {
	t.Helper()
	f, err := flow.Parse("flow.yaml", []byte("flow: f\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n"+
		"  work: {type: worker, topic: t, input: {x: \"${ "+near+" }\"}}\ntransitions: {start: [work]}\n"))
	require.NoError(t, err)
	act, _ := f.Activity("work")
	const some = 100
	p := priced{input: fmt.Sprintf(`{"n":[%s],"s":%q}`, ones(some), text), budget: flow.NewBudget(nil)}
	_, err = act.Input(p)
	require.NoError(t, err)
	return int(some * (flow.MaxStepCost * 7 / 10) / p.budget.Spent())
}
