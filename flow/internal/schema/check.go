package schema

import "errors"

// Check reports whether a canonical text fits the schema; a *Misfit says what does not. spend is
// told units before they are worked off, some ahead, and ends the check by an error, which Check
// returns. Other errors: ErrNesting.
func (s *Schema) Check(canonicalText string, spend func(units int64) error) (*Misfit, error) {
	e := &evaluation{
		spend: spend, kept: map[outcome]kept{}, active: make([]active, s.rules), cycle: never, base: &scope{},
	}
	if !e.pay(int64(len(canonicalText))/readSpan + int64(s.rules)/formSpan) {
		return nil, e.err
	}
	var root ref
	if e.document, root = read(canonicalText); !e.pay(int64(len(e.values))) {
		return nil, e.err
	}
	fits := e.apply(s.root, root, e.base, nil)
	if e.flush(); e.err != nil {
		return nil, e.err
	}
	if fits {
		return nil, nil
	}
	return e.explain(s.root, root), nil
}

// MaxExplained bounds the work of listing what does not fit, in units.
const MaxExplained = 200_000

var errExplained = errors.New("enough was explained")

// explain lists what does not fit. It has a budget of its own: that something does not fit is
// known by now, and is not to be taken back.
func (e *evaluation) explain(root *rule, v ref) *Misfit {
	left := int64(MaxExplained)
	e.spend = func(units int64) error {
		if left -= units; left < 0 {
			return errExplained
		}
		return nil
	}
	e.keepAll = true
	x := &explanation{
		evaluation: e, misfit: &Misfit{}, walked: map[outcome]bool{}, nearest: map[outcome]int{},
		listed: map[listed]bool{},
	}
	x.walk(root, v, e.base, nil)
	if len(x.misfit.Problems) == 0 {
		x.misfit.Problems = []Problem{{Message: "does not fit the schema"}}
	}
	return x.misfit
}
