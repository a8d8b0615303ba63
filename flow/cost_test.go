package flow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// step is a Scope whose evaluations share a budget.
type step struct {
	results
	budget *flow.Budget
}

func (s step) Budget() *flow.Budget { return s.budget }

func newStep(output string) step {
	return step{results{"start": ran(output)}, flow.NewBudget(nil)}
}

// list is a JSON list of n elements.
func list(n int, format string) string {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = fmt.Sprintf(format, i)
	}
	return "[" + strings.Join(elements, ",") + "]"
}

// inputs evaluates the inputs of all elements of an `each`.
func inputs(a *flow.Activity, s flow.Scope) (n int, err error) {
	items, err := a.Each(s)
	for i := 0; i < len(items) && err == nil; i++ {
		if _, err = a.ElementInput(s, items[i], i); err == nil {
			n++
		}
	}
	return n, err
}

// The inputs of all elements of an `each` share the budget of their step. The error says which
// expression, how much of how much, and comes at the same element each time.
func TestElementsShareABudget(t *testing.T) {
	t.Parallel()
	each := with(t, `type: worker, topic: a, each: start.output.l, input: {x: "${ start.output.p.filter(y, y == item).size() }"}`)
	output := `{"l":` + list(10_000, "%d") + `,"p":` + list(30_000, "%d") + `}`
	s := newStep(output)
	n, err := inputs(each, s)
	var failed *flow.EvalError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "x", failed.Activity)
	require.Equal(t, "input", failed.Place)
	require.Equal(t, "start.output.p.filter(y, y == item).size()", failed.Expression)
	var exceeded *flow.BudgetError
	require.ErrorAs(t, err, &exceeded)
	require.ErrorContains(t, err, fmt.Sprintf("may spend %d units: %d are spent, and this takes %d more", flow.MaxStepCost, exceeded.Spent, exceeded.Asked))
	require.InDelta(t, flow.MaxStepCost, exceeded.Spent, 1000)
	again, other := inputs(each, newStep(output))
	require.Equal(t, n, again)
	require.EqualError(t, other, err.Error())
	_, err = each.Each(s)
	require.ErrorAs(t, err, &exceeded, "the step has nothing left")
}

// Usual inputs of a long list stay far below the budget, also beside a large list.
func TestUsualElementsStayBelow(t *testing.T) {
	t.Parallel()
	each := with(t, `type: worker, topic: a, each: start.output.lines, input: {tenant: "${ start.output.tenant }", sku: "${ item.sku }", total: "${ item.price * item.qty }", key: "${ job.id }/${ index }"}`)
	s := newStep(`{"lines":` + list(flow.MaxElements, `{"price":12.5,"qty":3,"sku":"a-%d"}`) + `,"tenant":"t"}`)
	n, err := inputs(each, s)
	require.NoError(t, err)
	require.Equal(t, flow.MaxElements, n)
	require.Less(t, s.budget.Spent(), int64(flow.MaxStepCost/3))

	whole := with(t, `type: worker, topic: a, input: "${ sum(start.output.lines.filter(l, l.qty > 1).map(l, l.price * l.qty)) }"`)
	s = newStep(`{"lines":` + list(5000, `{"price":12.5,"qty":%d}`) + `}`)
	_, err = whole.Input(s)
	require.NoError(t, err)
	require.Less(t, s.budget.Spent(), int64(flow.MaxStepCost/10))
}

// An evaluation that takes too long ends as such. Nothing follows from it.
func TestStoppedEvaluation(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`type: worker, topic: a, input: "${ start.output.exists(x, start.output.exists(y, y > x || x.gone)) }"`,
		`type: worker, topic: a, input: "a ${ [start.output, start.output].map(l, size(l.map(x, x))) }"`,
	} {
		s := newStep(list(9_000, "%d"))
		s.budget = flow.NewBudget(func() bool { return true })
		_, err := with(t, text).Input(s)
		require.ErrorIs(t, err, flow.ErrStopped)
		var exceeded *flow.BudgetError
		require.NotErrorAs(t, err, &exceeded)
	}
}
