package memory

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Next returns when the clock alone makes something happen next: a row that is not held becomes
// due, the `within` of a request ends, or a kept signal expires. It may be in the past; Never
// means that nothing will. A simulator sleeps until then instead of polling.
func (s *Store) Next() collation.Micros {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := collation.Never
	for id, rows := range s.rows {
		if j := s.jobs[id]; j != nil && j.State == journal.JobQuarantined {
			continue
		}
		for _, r := range rows {
			at := r.NextAt
			switch {
			case r.Held == collation.HeldKept:
				at = r.WithinAt
			case r.Held != "":
				at = collation.Never
			}
			next = sooner(next, at)
			if r.Kind == journal.MessageRequest {
				next = sooner(next, r.WithinAt)
			}
		}
	}
	return next
}

func sooner(a, b collation.Micros) collation.Micros {
	if a == collation.Never || b != collation.Never && b < a {
		return b
	}
	return a
}
