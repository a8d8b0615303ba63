package flow

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBudget(t *testing.T) {
	t.Parallel()
	b := &Budget{limit: 10, left: 10}
	require.NoError(t, b.Spend(4))
	require.NoError(t, b.Spend(6))
	require.EqualValues(t, 10, b.Spent())
	var exceeded *BudgetError
	require.ErrorAs(t, b.Spend(1), &exceeded)
	require.EqualValues(t, 10, exceeded.Limit)
	require.ErrorAs(t, b.Spend(0), &exceeded, "once exceeded, it stays so")
	require.ErrorAs(t, b.Spend(math.MaxInt64), &exceeded)
	require.EqualValues(t, 11, b.Spent())
}

// Time stops the work, and no *BudgetError, from which a verdict would follow, comes of it.
func TestStopped(t *testing.T) {
	t.Parallel()
	late := false
	b := NewBudget(func() bool { return late })
	require.NoError(t, b.Spend(lookEvery))
	late = true
	require.NoError(t, b.Spend(lookEvery-1), "the time is looked at now and then only")
	require.ErrorIs(t, b.Spend(1), ErrStopped)
	require.ErrorIs(t, b.Spend(MaxStepCost), ErrStopped, "also when the budget would be exceeded by now")
}
