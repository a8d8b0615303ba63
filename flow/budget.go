package flow

import (
	"errors"
	"fmt"
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
}

// Error names the limit.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("this makes more than %d units of work, which is the limit of one step: "+
		"give it less data, or let a worker do the work", e.Limit)
}

// Budget bounds what the evaluations of one step may cost together: the expressions of a Leg1,
// or of a Leg2, or the check of an input. Its units follow from the data alone, so that every
// process and the verifier come to the same verdict. Time is only the second net. A Budget is not
// safe for concurrent use. Once it is exceeded or stopped, every later Spend says so again.
type Budget struct {
	limit, left int64
	stop        func() bool
	unlooked    int64 // units since the last look at the time
	stopped     bool
}

// NewBudget returns a budget of MaxStepCost. stop is asked now and then whether the work shall end
// without a verdict; nil: never.
func NewBudget(stop func() bool) *Budget {
	return &Budget{limit: MaxStepCost, left: MaxStepCost, stop: stop}
}

// Spend takes units from the budget before the work is done. Errors: *BudgetError if there are
// not so many left, ErrStopped.
func (b *Budget) Spend(units int64) error {
	if b.stopped {
		return ErrStopped
	}
	if units > b.left {
		b.left = -1 // for every later Spend
		return &BudgetError{Limit: b.limit}
	}
	b.left -= units
	if b.unlooked += units; b.stop != nil && b.unlooked >= lookEvery {
		b.unlooked = 0
		if b.stopped = b.stop(); b.stopped {
			return ErrStopped
		}
	}
	return nil
}

// Spent is how much was taken so far, in units; more than the limit if the budget is exceeded.
func (b *Budget) Spent() int64 { return b.limit - b.left }
