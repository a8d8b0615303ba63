package memstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// txn is an open transaction. It owns the locks of jobs, and of those of their rows that it
// loaded.
type txn struct {
	jobs []journal.JobID // locked, in order
	rows map[journal.GUID]bool
}

func newTxn() *txn { return &txn{rows: map[journal.GUID]bool{}} }

// owner returns the transaction that has the lock, or nil.
func (s *Store) owner(id journal.JobID) *txn {
	if queue := s.locks[id]; len(queue) > 0 {
		return queue[0]
	}
	return nil
}

// rowLocked says whether a committer has locked the row (J8).
func (s *Store) rowLocked(id journal.JobID, g journal.GUID) bool {
	o := s.owner(id)
	return o != nil && o.rows[g]
}

// acquire waits for the lock, behind those that came before. The store is unlocked meanwhile.
func (s *Store) acquire(ctx context.Context, id journal.JobID, t *txn) error {
	if s.owner(id) == t {
		return nil
	}
	if s.locks[id] = append(s.locks[id], t); s.owner(id) != t {
		defer context.AfterFunc(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.moved.Broadcast()
		})()
	}
	for s.owner(id) != t {
		if ctx.Err() != nil {
			s.locks[id] = slices.DeleteFunc(s.locks[id], func(o *txn) bool { return o == t })
			return fmt.Errorf("memory: wait for job %s: %w: %w", id, store.ErrUnavailable, context.Cause(ctx))
		}
		s.moved.Wait()
	}
	t.jobs = append(t.jobs, id)
	return nil
}

// release gives all locks of t to the next in their queues.
func (s *Store) release(t *txn) {
	for _, id := range t.jobs {
		if s.locks[id] = s.locks[id][1:]; len(s.locks[id]) == 0 {
			delete(s.locks, id)
		}
	}
	t.jobs, t.rows = nil, nil
	s.moved.Broadcast()
}

// writeRow runs one writing transaction on a row of a job. It waits for a committer that has
// loaded the row. The job is nil if it does not exist or is a tombstone.
func (s *Store) writeRow(
	ctx context.Context, op string, id journal.JobID, row journal.GUID, change func(u *undo, j *job) error,
) error {
	err := s.write(op, func(u *undo) error {
		if s.living(id) != nil && s.rowLocked(id, row) {
			t := newTxn()
			if err := s.acquire(ctx, id, t); err != nil {
				return err
			}
			defer s.release(t)
		}
		return change(u, s.living(id))
	})
	if err != nil {
		return fmt.Errorf("memory: %s %s: %w", op, row, err)
	}
	return nil
}
