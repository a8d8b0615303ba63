package memstore

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Peeked is what the store holds of one message at a moment.
type Peeked struct {
	State   journal.JobState   // of its job; "" if that does not exist
	Row     *collation.Row     // of the message; nil if it is gone
	Receipt *collation.Receipt // without a response; nil if there is none
}

// Peek reads the state of a message regardless of locks, for the checks of a simulator.
func (s *Store) Peek(id journal.JobID, row, receipt journal.GUID) Peeked {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Peeked{Row: copyRow(s.row(id, row))}
	if j := s.jobs[id]; j != nil {
		p.State, p.Receipt = j.State, clone(j.receipts[receipt])
	}
	return p
}

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
