package memstore

import (
	"bytes"
	"cmp"
	"context"
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

// Expire implements store.Retention. A job becomes a tombstone and loses its open rows, at most limit of all. Its
// history stays, and so does the tombstone: each time for another TombstoneAge.
func (s *Store) Expire(_ context.Context, limit int) (more bool, err error) {
	err = s.write("expire", func(u *undo) error {
		left, needed := limit, s.needed()
		for _, j := range s.expired() {
			gone := j.State == journal.JobExpired
			if left == 0 || s.owner(j.ID) != nil || !gone && (!j.State.Closed() || needed[j.ID]) {
				continue
			}
			if !gone {
				set(u, &j.State, journal.JobExpired)
				left--
			}
			if left = s.clear(u, j, left); !s.open(j) {
				set(u, &j.expires, s.now()+micros(store.TombstoneAge))
			}
		}
		more = left == 0
		return nil
	})
	return more && err == nil, err
}

// Retire implements store.Retention. History stays: nobody needs its room.
func (s *Store) Retire(context.Context, store.Archive) (more bool, err error) { return false, nil }

// needed returns the jobs whose record is still needed: a job of their compensations is ordered
// or not closed (3.5), the last job that resumes them is not closed or can be resumed itself, or a job
// that goes on from an entry of them is not closed.
func (s *Store) needed() map[journal.JobID]bool {
	out := map[journal.JobID]bool{}
	for _, j := range s.jobs {
		if j.Flow.Name == flow.UndoName && j.Parent != nil && !j.State.Closed() && j.State != journal.JobExpired {
			out[j.Parent.Job] = true
		}
		again := j.next.IsZero() && (j.State == journal.JobFailed || j.State == journal.JobInterrupted)
		for _, a := range s.takes(j) {
			out[a.ID] = out[a.ID] || !j.State.Closed() || again && !a.forked
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
	return len(s.rows[j.ID]) > 0 || slices.ContainsFunc(s.letters, func(l *store.DeadView) bool {
		return l.Letter.Job == j.ID
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
	return left - s.dropLetters(u, left, func(l *store.DeadView) bool { return l.Letter.Job == j.ID })
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
