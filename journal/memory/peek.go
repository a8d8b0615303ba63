package memory

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
