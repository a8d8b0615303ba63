package expr

import (
	"bytes"

	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// The price list. A unit is about 50 ns of one core and at most about 100 bytes of memory. A price
// follows from the values alone: every process and the verifier come to the same sum (V17).
const (
	// unitTime is the time that a unit stands for, in nanoseconds.
	unitTime = 50
	// textPerUnit bytes are written or decoded for a unit, readPerUnit are searched or counted.
	textPerUnit, readPerUnit = 16, 48
	// samePerUnit bytes are compared for a unit.
	samePerUnit = 512
	// shownPerUnit bytes of a text that may end up in an error are handled for a unit.
	shownPerUnit = 8
	// slotsPerUnit places of a list are copied for a unit.
	slotsPerUnit = 1
	// pathPrice is an evaluation of a direct path, celPrice one of a program.
	pathPrice, celPrice = 2, 12
	// decimalPrice is an operation on a decimal, quotientPrice a division.
	decimalPrice, quotientPrice = 5, 16
	// zonePrice is a look into the database of time zones, which reads files.
	zonePrice = 500
)

// Step is what the evaluations of one step share: the budget, and what they have read. What was
// read once costs nothing when it is read again, in each evaluation of the step. Not safe for
// concurrent use.
type Step struct {
	spending func(units int64) error
	err      error // of spending, which ended the evaluation
	known    map[Ref]known
	patterns map[string]*pattern
}

// known is a value that was read.
type known struct {
	text  []byte
	value ref.Val
}

// NewStep returns a Step that takes its units by spend, before the work is done. An error of spend
// ends the evaluation, which returns it as it is.
func NewStep(spend func(units int64) error) *Step { return &Step{spending: spend} }

// spend takes units. Without them it panics: CEL's operators absorb errors, and some results of
// methods cannot be errors. ended recovers.
func (s *Step) spend(units int64) {
	if err := s.spending(units); err != nil {
		s.err = err
		panic(interpreter.EvalCancelledError{Message: err.Error(), Cause: interpreter.CostLimitExceeded})
	}
}

// spendFor takes a unit for every perUnit of n, at least one.
func (s *Step) spendFor(n, perUnit int) { s.spend(1 + int64(n/perUnit)) }

// afford is spendFor outside of an evaluation.
func (s *Step) afford(n, perUnit int) (err error) {
	s.begin()
	defer s.ended(&err)
	s.spendFor(n, perUnit)
	return nil
}

// begin begins a part of an evaluation, which ended has to follow by defer.
func (s *Step) begin() { s.err = nil }

// ended makes the budget's error that of the part that it ended.
func (s *Step) ended(err *error) {
	if s.err != nil {
		_ = recover()
		*err = s.err
	}
}

// keptFrom is the size from which a value is kept for the step, in bytes.
const keptFrom = 256

// value makes a value of the text of a mention. Values of activities are kept for the step; an
// element is not, because the next has its own.
func (s *Step) value(r Ref, text []byte) ref.Val {
	if r.Field == "" || len(text) < keptFrom {
		return s.fromJSON(text)
	}
	if k, ok := s.known[r]; ok && (&k.text[0] == &text[0] && len(k.text) == len(text) || bytes.Equal(k.text, text)) {
		return k.value
	}
	if s.known == nil {
		s.known = map[Ref]known{}
	}
	k := known{text, s.fromJSON(text)}
	s.known[r] = k
	return k.value
}

// CallCost makes Step what CEL takes for an estimator of costs, by which its nodes find it.
// The prices are those of the nodes of this package.
func (*Step) CallCost(string, string, []ref.Val, ref.Val) *uint64 { return &freeOfCharge }

var freeOfCharge uint64

// stepOf is the step in which a frame is evaluated.
func stepOf(frame *interpreter.ExecutionFrame) *Step { return frame.CostTracker().Estimator.(*Step) }
