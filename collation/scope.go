package collation

import "github.com/quipu-journal/quipu/flow"

// scope is what the expressions of one activity see: results along its own address (1.9).
type scope struct {
	b      *builder
	reader *flow.Activity // nil: the flow's output
	dad    DAD
	// budget bounds the evaluations of one Leg1, of one set of transitions, or of one output. What
	// is one budget is the same in every mode, so that the verdict is (C11), and the verifier has
	// the same ones.
	budget flow.Budget
}

// scope makes the view of an activity at the address dad, for expressions that mention the
// names. It asks for all results at once: an evaluation would stop at the first missing one,
// and each load is a trip.
func (b *builder) scope(reader *flow.Activity, dad DAD, names []string) (flow.Scope, error) {
	s := &scope{b, reader, dad, *flow.NewBudget(b.stop)}
	b.budgets = append(b.budgets, &s.budget)
	var missing error // of these names alone: what else the decision misses is put off
	for _, name := range names {
		if _, err := s.result(name); err != nil {
			missing = err
		}
	}
	return s, missing
}

// whole makes the view for the flow's output: each name means its last pass.
func (b *builder) whole() (flow.Scope, error) {
	return b.scope(nil, "", b.s.Flow.OutputNeeds())
}

// Result implements flow.Scope.
func (s *scope) Result(name string) (flow.Result, bool) {
	r, err := s.result(name)
	if r == nil || err != nil {
		return flow.Result{}, false
	}
	return *r, true
}

// result reads the result that the name means here, or asks for it; nil: there is no such activity.
func (s *scope) result(name string) (*flow.Result, error) {
	act, ok := s.b.s.Flow.Activity(name)
	if !ok {
		return nil, nil
	}
	if s.reader == nil && passes(act) {
		return s.b.latest(name)
	}
	key := addressOf(act, s.reader, s.dad)
	if s.b.own != nil && key == s.b.at {
		return s.b.own, nil
	}
	return s.b.load(key)
}

// Job implements flow.Scope.
func (s *scope) Job() flow.JobInfo {
	j := &s.b.s.Job
	return flow.JobInfo{ID: j.Key, Flow: j.Flow.Name, Version: j.Flow.Version, StartedMicros: int64(j.Started)}
}

// Budget implements flow.Scope.
func (s *scope) Budget() *flow.Budget { return &s.budget }

// passes reports whether the activity may run at several addresses: it makes passes, or lies
// below an activity that does.
func passes(a *flow.Activity) bool {
	for ; a != nil; a = a.Parent {
		if a.Passes() {
			return true
		}
	}
	return false
}

// addressOf is where the reader at the address dad finds the output of act (1.9): at the prefix
// of act's depth. If act does not dominate the reader, the address is that of their nearest
// common dominator, with one segment more for each level down to act. A nil reader is the
// flow's output, for which an activity without passes has one address.
func addressOf(act, reader *flow.Activity, dad DAD) InstanceKey {
	if reader == nil {
		return InstanceKey{act.Name, format([]run{{0, act.Depth + 1}})}
	}
	shared, levels := act, 0
	for !shared.Dominates(reader) {
		shared = shared.Parent
		levels++
	}
	dad = dad.Prefix(shared.Depth + 1)
	for range levels {
		dad = dad.Child()
	}
	return InstanceKey{act.Name, dad}
}

// AddressOf is where an expression of the reader at the address dad finds the output of act, an
// activity that leads to the reader (1.9).
func AddressOf(act, reader *flow.Activity, dad DAD) InstanceKey { return addressOf(act, reader, dad) }
