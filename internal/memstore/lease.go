package memstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
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

// take gives the row to a run and counts the run, under a higher fence (E9). No other run gets
// the row until this one releases it or its session ends (P21).
func (s *Store) take(u *undo, row *collation.Row, l *store.Lease) {
	row.Runs++
	row.Fence++
	row.Holder, row.Session, row.NextAt = l.Holder, l.Session, collation.Never
	s.putRow(u, row)
}

// letGo takes a row from its run. It is due now, unless it is held.
func (s *Store) letGo(row *collation.Row) {
	if row.Holder, row.Session = "", 0; row.Held == "" {
		row.NextAt = s.now()
	}
}

func (j *job) lease(row *collation.Row) store.Lease {
	return store.Lease{
		Job: j.ID, Request: row.GUID, Space: j.Space, Generation: j.Generation, Turn: row.Turn,
		Holder: row.Holder, Session: row.Session, Fence: row.Fence, Runs: row.Runs,
	}
}

// Lease implements store.Requests.
func (s *Store) Lease(
	ctx context.Context, id journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	l, spent := store.Lease{Holder: holder, Session: session}, false
	err := s.writeRow(ctx, "lease", id, request, func(u *undo, j *job) error {
		row, err := s.asked(j, request, turn)
		switch {
		case err != nil:
			return err
		case !s.alive(session):
			return store.ErrSession
		case row.Holder != "" && row.Holder != holder || j.busy(row, s.now()):
			return store.ErrLeased
		case row.Runs >= store.MaxRuns: // it is due, marked by its runs, so that an engine holds it (S8)
			if spent = true; row.Runs == store.MaxRuns {
				row.Runs++
				row.Holder, row.Session, row.NextAt = "", 0, s.now()
				s.putRow(u, row)
			}
			return nil
		}
		s.take(u, row, &l)
		l = j.lease(row)
		return nil
	})
	switch {
	case err != nil:
		return store.Lease{}, err
	case spent:
		return store.Lease{}, fmt.Errorf("memory: lease %s: %w", request, store.ErrExhausted)
	}
	return l, nil
}

// Keep implements store.Requests.
func (s *Store) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	err := s.writeRow(ctx, "keep", l.Job, l.Request, func(u *undo, j *job) error {
		if k := s.jobs[l.Job]; k != nil && k.State.Closed() { // a tombstone, too
			return store.ErrJobClosed
		}
		row, err := s.fenced(j, &l)
		switch {
		case err != nil:
			return err
		case !s.alive(l.Session):
			return store.ErrStale
		case row.Holder == "":
			s.take(u, row, &l)
		default:
			row.Session, row.NextAt = l.Session, collation.Never
			s.putRow(u, row)
		}
		l.Fence, l.Runs, l.Generation, l.Space, l.Fresh = row.Fence, row.Runs, j.Generation, j.Space, false
		return nil
	})
	if err != nil {
		return store.Lease{}, err
	}
	return l, nil
}

// HandBack implements store.Requests.
func (s *Store) HandBack(ctx context.Context, l store.Lease) error {
	return s.writeRow(ctx, "hand back", l.Job, l.Request, func(u *undo, j *job) error {
		if j == nil {
			return store.ErrStale
		}
		row := clone(s.row(j.ID, l.Request))
		if row == nil || row.Kind != journal.MessageRequest || row.Turn != l.Turn || row.Holder != l.Holder ||
			row.Holder == "" {
			return store.ErrStale
		}
		row.Runs = max(row.Runs-1, 0)
		row.Fence++
		if l.Looks {
			row.TurnSent = row.Turn
		}
		s.letGo(row)
		s.putRow(u, row)
		return nil
	})
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
