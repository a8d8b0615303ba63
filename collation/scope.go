package collation

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// scope is what an expression of one activity sees: results along its own
// address (1.9).
type scope struct {
	b      *builder
	reader *flow.Activity // nil: the flow's output
	dad    DAD
}

// scope gives the view of the activity at the address dad, for expressions that
// mention the names.
func (b *builder) scope(reader *flow.Activity, dad DAD, names []string) flow.Scope {
	s := &scope{b, reader, dad}
	s.foresee(names)
	return s
}

// whole gives the view of the flow's output: each name means its last pass.
func (b *builder) whole() flow.Scope {
	s := &scope{b: b}
	s.foresee(b.s.Flow.OutputNeeds())
	return s
}

// foresee asks for everything that the names mean at once: an evaluation ends at
// the first result that it misses, and each load is a trip.
func (s *scope) foresee(names []string) {
	for _, name := range names {
		_, _ = s.Result(name)
	}
}

// Result implements flow.Scope.
func (s *scope) Result(name string) (flow.Result, bool) {
	act, ok := s.b.s.Flow.Activity(name)
	if !ok {
		return flow.Result{}, false
	}
	var r *flow.Result
	if s.reader == nil && passes(act) {
		r, ok = s.b.latest(name)
	} else {
		key := addressOf(act, s.reader, s.dad)
		if s.b.own != nil && key == s.b.at {
			return *s.b.own, true
		}
		r, ok = s.b.load(key)
	}
	if !ok {
		return flow.Result{}, false
	}
	return *r, true
}

// Job implements flow.Scope.
func (s *scope) Job() flow.JobInfo {
	j := &s.b.s.Job
	return flow.JobInfo{ID: j.Key, Flow: j.Flow.Name, Version: j.Flow.Version, StartedMicros: int64(j.Started)}
}

// passes reports whether the activity may run at several addresses: below, or
// as, one that makes passes.
func passes(a *flow.Activity) bool {
	for ; a != nil; a = a.Parent {
		if a.Passes() {
			return true
		}
	}
	return false
}

// addressOf is where the output of act is seen by the reader at the address dad
// (1.9): at the prefix of act's depth; an ancestor that does not dominate the
// reader at the address of the nearest dominator that they share, extended by
// one segment per level. A nil reader is the flow's output, for which an
// activity that makes no passes has one address.
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

// AddressOf is where an expression of the reader at the address dad finds the
// output of act, which leads to it (1.9).
func AddressOf(act, reader *flow.Activity, dad DAD) InstanceKey { return addressOf(act, reader, dad) }

// load gives a result that was loaded, or asks for it.
func (b *builder) load(key InstanceKey) (*flow.Result, bool) {
	r, asked := b.s.Results[key]
	if !asked {
		b.need.Results = append(b.need.Results, key)
		return nil, false
	}
	if r == nil {
		r = &flow.Result{}
	}
	return r, true
}

// latest gives the last result of an activity, or asks for it. That of the
// message's own activity is the one that it brings, while the store does not know
// it yet: afterwards another pass may have brought a later one.
func (b *builder) latest(name string) (*flow.Result, bool) {
	if b.own != nil && b.act != nil && b.act.Name == name && b.brings() {
		return b.own, true
	}
	r, asked := b.s.Latest[name]
	if !asked {
		b.need.Latest = append(b.need.Latest, name)
		return nil, false
	}
	if r == nil {
		r = &flow.Result{}
	}
	return r, true
}

// brings reports whether this plan records the result of the message's activity.
func (b *builder) brings() bool {
	w := b.p.Receipt
	return w != nil && !w.Before.Step1() || b.p.Entry.Result != nil || b.p.Entry.Trouble != nil
}

// stands gives a row of the job that was loaded, or asks for it.
func (b *builder) stands(k RowKey) *Row {
	row, asked := b.s.Rows[k.GUID]
	if !asked && !b.s.AllRows {
		b.need.Rows = append(b.need.Rows, k)
	}
	return row
}

// waiting gives an open wait of the job that was loaded, or asks for it.
func (b *builder) waiting(g journal.GUID) *Wait {
	w, asked := b.s.Waits[g]
	if !asked && !b.s.AllRows {
		b.need.Waits = append(b.need.Waits, g)
	}
	return w
}
