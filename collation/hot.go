package collation

import (
	"maps"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// MaxHot bounds the instances, results and rows of a state that is kept. Each decision copies
// them, so they must not grow with the job's history (J2).
const MaxHot = 1024

// Fork copies the state for a decision that may be dropped. The values that the maps point to
// are shared: Apply replaces them and never changes them.
func (s *State) Fork(now Micros) *State {
	f := *s
	f.Now = now
	f.Instances, f.Rows, f.Results = maps.Clone(s.Instances), maps.Clone(s.Rows), maps.Clone(s.Results)
	f.Receipts = make(map[journal.GUID]*Receipt, 1)
	return &f
}

// Keep reports whether a committed state may be kept as hot state (W6), and reduces it to what
// may be kept. The job has to be open and whole. Its waits are not kept, since signals change
// them. No nil members are left.
func (s *State) Keep() bool {
	if !s.Whole || s.Job.State != journal.JobOpen || len(s.Instances)+len(s.Results)+len(s.Rows) > MaxHot {
		return false
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
	s.AllRows, s.Born = false, false
	return true
}

// Approximate sizes of the parts of a hot state, in bytes.
const (
	hotState    = 1 << 10
	hotInstance = 300
	hotRow      = 500
	hotResult   = 200
)

// Size is roughly how many bytes a kept state takes.
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
