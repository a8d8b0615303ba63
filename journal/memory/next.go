package memory

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Next returns when the clock alone makes something happen next: a row that is not held becomes
// due, the `within` of a request ends, or a kept signal expires. It may be in the past; Never
// means that nothing will. kept is when the first kept signal expires. A simulator sleeps until
// then instead of polling.
func (s *Store) Next() (next, kept collation.Micros) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, kept = collation.Never, collation.Never
	for j, r := range s.eachRow() {
		if j != nil && j.State == journal.JobQuarantined {
			continue
		}
		switch r.Held {
		case "":
			next = sooner(next, r.NextAt)
		case collation.HeldKept:
			kept = sooner(kept, r.WithinAt)
		}
		if r.Kind == journal.MessageRequest {
			next = sooner(next, r.WithinAt)
		}
	}
	return sooner(next, kept), kept
}

func sooner(a, b collation.Micros) collation.Micros {
	if a == collation.Never || b != collation.Never && b < a {
		return b
	}
	return a
}
