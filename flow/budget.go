package flow

import (
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/flow/internal/expr"
)

// lookEvery is how many units are spent between two looks at the time.
const lookEvery = 10_000

// ErrStopped says that an evaluation was stopped because it took too long, on this machine and at
// this time. It says nothing of the data: nobody may record a verdict that follows from it.
var ErrStopped = errors.New("the evaluation takes too long: it was stopped")

// BudgetError says that the data makes more work than is allowed. It is the same everywhere.
type BudgetError struct {
	// Limit is the budget, in units.
	Limit int64
	// Spent is what the step had spent, and Asked what its next part would have spent.
	Spent, Asked int64
}

// Error says how much of how much.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("too much work for one step, which may spend %d units: %d are spent, and this takes %d more; "+
		"give it less data, or let a worker do the work", e.Limit, e.Spent, e.Asked)
}

// Budget bounds what the evaluations of one step may cost together: the expressions of a Leg1,
// or of a Leg2, or the check of an input. Its units follow from the data alone, so that every
// process and the verifier come to the same verdict. Time is only the second net. A Budget is not
// safe for concurrent use. Once it is exceeded or stopped, every later Spend says so again.
type Budget struct {
	limit, left int64
	stop        func() bool
	unlooked    int64 // units since the last look at the time
	ended       error // what every later Spend says
	read        *expr.Step
}

// NewBudget returns a budget of MaxStepCost. stop is asked now and then whether the work shall end
// without a verdict; nil: never.
func NewBudget(stop func() bool) *Budget {
	return &Budget{limit: MaxStepCost, left: MaxStepCost, stop: stop}
}

// Spend takes units from the budget before the work is done. Errors: *BudgetError if there are
// not so many left, ErrStopped.
func (b *Budget) Spend(units int64) error {
	switch {
	case b.ended != nil:
		return b.ended
	case units > b.left:
		b.ended = &BudgetError{Limit: b.limit, Spent: b.limit - b.left, Asked: units}
		b.left = -1
		return b.ended
	}
	b.left -= units
	if b.unlooked += units; b.stop != nil && b.unlooked >= lookEvery {
		b.unlooked = 0
		if b.stop() {
			b.ended = ErrStopped
		}
	}
	return b.ended
}

// step is what the evaluations that share the budget share besides: what they have read.
func (b *Budget) step() *expr.Step {
	if b.read == nil {
		b.read = expr.NewStep(b.Spend)
	}
	return b.read
}

// Spent is how much was taken so far, in units; more than the limit if the budget is exceeded.
func (b *Budget) Spent() int64 { return b.limit - b.left }
