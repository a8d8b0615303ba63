package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// asked returns the row of a request that may run in the turn that a worker
// names.
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

// Lease implements store.Requests.
func (s *Store) Lease(
	ctx context.Context, id journal.JobID, request journal.GUID, turn int, holder string, ttl time.Duration,
) (store.Lease, error) {
	var l store.Lease
	err := s.writeRow(ctx, "lease", id, request, func(u *undo, j *job) error {
		row, err := s.asked(j, request, turn)
		now := s.now()
		switch {
		case err != nil:
			return err
		case row.Holder != holder && row.LeaseUntil > now || j.busy(row, now):
			return store.ErrLeased
		case row.Runs >= store.MaxRuns:
			return store.ErrExhausted
		}
		s.take(u, row, holder, now, ttl)
		l = j.lease(row)
		return nil
	})
	if err != nil {
		return store.Lease{}, fmt.Errorf("memory: lease %s: %w", request, err)
	}
	return l, nil
}

// busy reports that an effect which the turn started is unfinished, and its try
// may still go on (E4).
func (j *job) busy(row *collation.Row, now collation.Micros) bool {
	for _, f := range j.effects {
		if f.Request == row.GUID && f.State == store.EffectStarted && f.Turn == row.Turn && f.Until > now {
			return true
		}
	}
	return false
}

// take gives the row to a holder: one run more, under a new fence (E9).
func (s *Store) take(u *undo, row *collation.Row, holder string, now collation.Micros, ttl time.Duration) {
	row.Runs++
	row.Fence++
	row.Holder = holder
	extend(row, now+micros(ttl))
	s.putRow(u, row)
}

// extend moves the lease, and the due time with it: nobody else is asked as
// long as it lasts (P21).
func extend(row *collation.Row, until collation.Micros) {
	row.LeaseUntil = until
	row.NextAt = max(row.NextAt, until)
}

func (j *job) lease(row *collation.Row) store.Lease {
	return store.Lease{
		Job: j.ID, Request: row.GUID, Space: j.Space, Generation: j.Generation, Turn: row.Turn,
		Holder: row.Holder, Fence: row.Fence, Runs: row.Runs,
	}
}

// fenced returns the row that a lease stands for. A lease that its run took by a
// call whose answer it does not know yet gets its fence here.
func (s *Store) fenced(j *job, l *store.Lease) (*collation.Row, error) {
	row, err := s.asked(j, l.Request, l.Turn)
	if err != nil {
		return nil, err
	}
	if l.TTL > 0 && row.Fence == l.Fence+1 && row.Holder == l.Holder {
		l.Fence = row.Fence
	}
	if row.Fence != l.Fence || row.Holder != "" && row.Holder != l.Holder {
		return nil, store.ErrStale
	}
	return row, nil
}

// Heartbeat implements store.Requests.
func (s *Store) Heartbeat(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	err := s.writeRow(ctx, "heartbeat", l.Job, l.Request, func(u *undo, j *job) error {
		if k := s.known(l.Job); k != nil && k.State.Closed() { // a tombstone, too
			return store.ErrJobClosed
		}
		row, err := s.fenced(j, &l)
		if err != nil {
			return err
		}
		if row.Holder == "" { // the first of a run that began without a lease
			s.take(u, row, l.Holder, s.now(), ttl)
		} else {
			extend(row, s.now()+micros(ttl))
			s.putRow(u, row)
		}
		l.Fence, l.Runs, l.Generation, l.Space, l.TTL = row.Fence, row.Runs, j.Generation, j.Space, 0
		return nil
	})
	if err != nil {
		return store.Lease{}, fmt.Errorf("memory: heartbeat %s: %w", l.Request, err)
	}
	return l, nil
}

// HandBack implements store.Requests.
func (s *Store) HandBack(ctx context.Context, l store.Lease) error {
	err := s.writeRow(ctx, "hand back", l.Job, l.Request, func(u *undo, j *job) error {
		if j == nil {
			return store.ErrStale
		}
		row := clone(s.row(j.ID, l.Request))
		if row == nil || row.Kind != journal.MessageRequest || row.Turn != l.Turn || row.Fence != l.Fence ||
			row.Holder != "" && row.Holder != l.Holder {
			return store.ErrStale
		}
		if row.Holder != "" {
			row.Runs = max(row.Runs-1, 0)
		}
		if row.Holder, row.LeaseUntil = "", collation.Never; row.Held == "" {
			row.NextAt = s.now()
		}
		s.putRow(u, row)
		return nil
	})
	if err != nil {
		return fmt.Errorf("memory: hand back %s: %w", l.Request, err)
	}
	return nil
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
