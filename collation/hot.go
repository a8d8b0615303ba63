package collation

import (
	"maps"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// MaxHot bounds the instances, results and rows of a state that is kept: each
// decision copies it, so that it must not grow with the history of its job (J2).
const MaxHot = 1024

// Fork copies the state for a decision that may come to nothing. What the members
// point to is shared: Apply replaces it and never changes it.
func (s *State) Fork(now Micros) *State {
	f := *s
	f.Now = now
	f.Instances, f.Rows, f.Results = maps.Clone(s.Instances), maps.Clone(s.Rows), maps.Clone(s.Results)
	f.Receipts = make(map[journal.GUID]*Receipt, 1)
	return &f
}

// Keep leaves of a committed state what may be kept as hot, and reports whether it
// may be at all (W6): an open job that the state holds whole, with nothing that
// other jobs or signals change. What is left has no member for what is not there.
func (s *State) Keep() bool {
	if !s.Whole || s.Job.State != journal.JobOpen || len(s.Instances)+len(s.Results)+len(s.Rows) > MaxHot {
		return false
	}
	for _, w := range s.Waits {
		if w != nil {
			return false
		}
	}
	for _, r := range s.Receipts {
		if r != nil && r.Verdict == journal.VerdictHandled && !r.Ledger.Complete() {
			return false
		}
	}
	maps.DeleteFunc(s.Instances, func(_ InstanceKey, i *Instance) bool { return i == nil })
	maps.DeleteFunc(s.Results, func(_ InstanceKey, r *flow.Result) bool { return r == nil })
	maps.DeleteFunc(s.Rows, func(_ journal.GUID, r *Row) bool { return r == nil || r.Job != s.Job.ID })
	s.Receipts, s.Unfinished, s.Record, s.Waits, s.Latest, s.Keys = nil, nil, nil, nil, nil, nil
	s.Past, s.PastPauses, s.Ends = nil, nil, nil
	s.AllRows = false
	return true
}

// Sizes of what a hot state consists of, roughly, in bytes.
const (
	hotState    = 1 << 10
	hotInstance = 300
	hotRow      = 500
	hotResult   = 200
)

// Size is about how many bytes a state takes that is kept.
func (s *State) Size() int {
	n := hotState + len(s.Instances)*hotInstance + len(s.Rows)*hotRow + len(s.Results)*hotResult
	for _, r := range s.Rows {
		n += len(r.Body) + len(r.Input)
	}
	for _, r := range s.Results {
		n += len(r.Output)
	}
	return n
}
