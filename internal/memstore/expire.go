package memstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// expired lists the jobs and tombstones whose time has passed, the oldest first.
func (s *Store) expired() []*job {
	now := s.now()
	var out []*job
	for _, id := range sortedIDs(s.jobs) {
		if j := s.jobs[id]; j.expires != collation.Never && j.expires <= now {
			out = append(out, j)
		}
	}
	slices.SortStableFunc(out, func(a, b *job) int { return cmp.Compare(a.expires, b.expires) })
	return out
}

// Expire implements store.Retention. A job becomes a tombstone and loses its open rows; its
// history stays until Retire. All tables have one limit.
func (s *Store) Expire(_ context.Context, limit int) (more bool, err error) {
	err = s.write("expire", func(u *undo) error {
		left, read := limit, s.undone()
		for _, j := range s.expired() {
			switch {
			case left == 0 || s.owner(j.ID) != nil:
				continue
			case j.State == journal.JobExpired && !s.open(j):
				s.end(u, j)
				left--
				continue
			case j.State == journal.JobExpired:
			case j.State.Closed() && !read[j.ID]:
				set(u, &j.State, journal.JobExpired)
				left--
			default:
				continue
			}
			if left = s.clear(u, j, left); !s.open(j) {
				set(u, &j.expires, s.now()+micros(store.TombstoneAge))
			}
		}
		more = left-s.dropUnclaimed(u, left) == 0
		return nil
	})
	return more && err == nil, err
}

// end drops a tombstone whose history is gone, and raises the floor, so that no key gets a
// generation twice (W11, C8). Another tombstone stays for another TombstoneAge.
func (s *Store) end(u *undo, j *job) {
	if len(j.chains) > 0 {
		set(u, &j.expires, s.now()+micros(store.TombstoneAge))
		return
	}
	if s.keys[j.Key] == j.ID {
		drop(u, s.keys, j.Key)
	}
	drop(u, s.jobs, j.ID)
	set(u, &s.floor, max(s.floor, j.Generation))
}

// Retire implements store.Retention. All tombstones count as one partition.
func (s *Store) Retire(ctx context.Context, archive store.Archive) (more bool, err error) {
	gone := s.retired()
	if archive != nil && len(gone) > 0 {
		err = archive(ctx, "memory", func(visit store.Visit) error {
			for _, j := range gone {
				s.mu.Lock()
				attachments := s.attachments(j)
				s.mu.Unlock()
				if err := visit(&j.Job, j.Flow.Digest, attachments, each(j.records())); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return false, fmt.Errorf("memory: retire: %w", err)
	}
	return false, s.write("retire", func(u *undo) error {
		for _, j := range gone {
			set(u, &j.history, history{})
		}
		return nil
	})
}

// retired lists the tombstones that have a history. Nobody changes them any more.
func (s *Store) retired() (out []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range sortedIDs(s.jobs) {
		if j := s.jobs[id]; j.State == journal.JobExpired && len(j.chains) > 0 {
			out = append(out, j)
		}
	}
	return out
}

// undone returns the jobs whose record is still needed: a job of their compensations is ordered
// or not closed (3.5), or a job that takes something over from it is not closed.
func (s *Store) undone() map[journal.JobID]bool {
	out := map[journal.JobID]bool{}
	for _, j := range s.jobs {
		if j.Flow.Name == flow.UndoName && j.Parent != nil && !j.State.Closed() && j.State != journal.JobExpired {
			out[j.Parent.Job] = true
		}
		if !j.State.Closed() {
			for _, a := range s.takes(j) {
				out[a.ID] = true
			}
		}
	}
	for _, r := range s.eachRow() {
		if r.Undo && !r.Sender.IsZero() {
			out[r.Sender] = true
		}
	}
	return out
}

// open says whether a tombstone has open rows.
func (s *Store) open(j *job) bool {
	return len(s.rows[j.ID]) > 0 || slices.ContainsFunc(s.letters, func(l *letter) bool {
		return l.view.Letter.Job == j.ID
	})
}

// clear removes the open rows of a tombstone, at most left, and returns how many are left then.
func (s *Store) clear(u *undo, j *job, left int) int {
	for _, g := range sortedIDs(s.rows[j.ID]) {
		if left > 0 {
			s.dropRow(u, j.ID, g)
			left--
		}
	}
	return left - s.dropLetters(u, left, func(l *letter) bool { return l.view.Letter.Job == j.ID })
}

// Extend implements store.Engine. There is always room.
func (s *Store) Extend(context.Context) error { return nil }

// Prune implements store.Engine. There are no markers of batches: a commit in memory always has
// its answer.
func (s *Store) Prune(_ context.Context, limit int) (n int, err error) {
	err = s.write("prune", func(u *undo) error {
		for _, k := range slices.SortedFunc(maps.Keys(s.signals), func(a, b collation.RowKey) int {
			return bytes.Compare(a.GUID[:], b.GUID[:])
		}) {
			if x := s.signals[k]; n < limit && x.at < s.now()-micros(store.SignalAge) && x.state != store.SignalKept {
				drop(u, s.signals, k)
				n++
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
