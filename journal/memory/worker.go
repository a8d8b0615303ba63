package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// asked returns the row of a request that may run in the worker's turn.
func (s *Store) asked(j *job, request journal.GUID, turn int) (*collation.Row, error) {
	if j == nil || j.State != journal.JobOpen {
		return nil, store.ErrStale
	}
	row := s.row(j.ID, request)
	if row == nil || row.Kind != journal.MessageRequest || row.Turn != turn || row.Held != "" {
		return nil, store.ErrStale
	}
	return clone(row), nil
}

// busy says that an effect of this turn is unfinished and its attempt may still be running (E4).
func (j *job) busy(row *collation.Row, now collation.Micros) bool {
	for _, f := range j.effects {
		if f.Request == row.GUID && f.State == store.EffectStarted && f.Turn == row.Turn && f.Until > now {
			return true
		}
	}
	return false
}

// fenced returns the row that a lease stands for. If the run took the lease by a call whose
// answer was lost, the lease gets its fence here.
func (s *Store) fenced(j *job, l *store.Lease) (*collation.Row, error) {
	row, err := s.asked(j, l.Request, l.Turn)
	if err != nil {
		return nil, err
	}
	if l.Fresh && row.Fence == l.Fence+1 && row.Holder == l.Holder {
		l.Fence = row.Fence
	}
	if row.Fence != l.Fence || row.Holder != "" && row.Holder != l.Holder {
		return nil, store.ErrStale
	}
	return row, nil
}

// Input implements store.Requests.
func (s *Store) Input(_ context.Context, id journal.JobID, request journal.GUID) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(id, request)
	if s.living(id) == nil || row == nil || row.Kind != journal.MessageRequest {
		return nil, fmt.Errorf("memory: input of %s: %w", request, store.ErrStale)
	}
	return slices.Clone(row.Body), nil
}
