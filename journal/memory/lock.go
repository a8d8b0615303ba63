package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// lock is the lock of one job (J3), or of the start of a child that has not begun. Waiters get it
// in the order in which they came.
type lock struct {
	owner *txn
	queue []*waiter
}

// txn is an open transaction. It owns the locks of jobs, and of those of their rows that it
// loaded.
type txn struct {
	jobs    []journal.JobID // locked, in order
	rows    map[journal.GUID]bool
	allRows map[journal.JobID]bool
}

func newTxn() *txn {
	return &txn{rows: map[journal.GUID]bool{}, allRows: map[journal.JobID]bool{}}
}

type waiter struct {
	txn *txn
	got chan struct{}
}

// owner returns the transaction that has the lock, or nil.
func (s *Store) owner(id journal.JobID) *txn {
	if l := s.locks[id]; l != nil {
		return l.owner
	}
	return nil
}

// rowLocked says whether a committer has locked the row (J8).
func (s *Store) rowLocked(id journal.JobID, g journal.GUID) bool {
	o := s.owner(id)
	return o != nil && (o.rows[g] || o.allRows[id])
}

// acquire waits for the lock. The caller has locked the store; acquire unlocks it while it waits.
func (s *Store) acquire(ctx context.Context, id journal.JobID, t *txn) error {
	l := s.locks[id]
	switch {
	case l == nil:
		s.locks[id] = &lock{owner: t}
		t.jobs = append(t.jobs, id)
		return nil
	case l.owner == t:
		return nil
	}
	w := &waiter{txn: t, got: make(chan struct{})}
	l.queue = append(l.queue, w)
	s.mu.Unlock()
	select {
	case <-w.got:
	case <-ctx.Done():
	}
	s.mu.Lock()
	if l.owner == t {
		t.jobs = append(t.jobs, id)
		return nil
	}
	l.queue = slices.DeleteFunc(l.queue, func(o *waiter) bool { return o == w })
	return fmt.Errorf("memory: wait for job %s: %w: %w", id, store.ErrUnavailable, context.Cause(ctx))
}

// release gives all locks of t to the first waiters.
func (s *Store) release(t *txn) {
	for _, id := range t.jobs {
		l := s.locks[id]
		if len(l.queue) == 0 {
			delete(s.locks, id)
			continue
		}
		next := l.queue[0]
		l.owner, l.queue = next.txn, l.queue[1:]
		close(next.got)
	}
	t.jobs, t.rows, t.allRows = nil, nil, nil
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
