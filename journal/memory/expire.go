package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// living returns a job that is more than a tombstone, or nil.
func (s *Store) living(id journal.JobID) *job {
	if j := s.jobs[id]; j != nil && j.State != journal.JobExpired {
		return j
	}
	return nil
}

// known returns the job, or the tombstone, that has its key; nil for those whose
// key was used again.
func (s *Store) known(id journal.JobID) *job {
	if j := s.jobs[id]; j != nil && j.replaced == collation.Never {
		return j
	}
	return nil
}

// late lists the jobs, and the tombstones with something left, whose time has
// passed, the oldest first.
func (s *Store) late() []*job {
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

// Expire implements store.Engine. A job becomes a tombstone first, so that
// nobody reads half of what belonged to it; what did goes after it, and its time
// stands until nothing is left. What comes to a tombstone later is not its own (C5).
func (s *Store) Expire(_ context.Context, limit int) (more bool, err error) {
	err = s.write("expire", func(u *undo) error {
		jobs := limit
		late := s.late()
		if len(late) == 0 {
			return nil
		}
		read := s.undone()
		for _, j := range late {
			if jobs > 0 && j.State.Closed() && s.owner(j.ID) == nil && !read[j.ID] {
				set(u, &j.State, journal.JobExpired)
				jobs--
			}
		}
		left := limits{limit, limit, limit, limit, limit, limit, limit, limit}
		for _, j := range late {
			if j.State == journal.JobExpired {
				s.remove(u, j, &left)
			}
		}
		more = min(jobs, left.instances, left.receipts, left.rows, left.woken, left.entries, left.effects, left.payloads, left.letters) == 0
		return nil
	})
	return more && err == nil, err
}

// undone are the jobs whose record is still read: a job of their compensations is
// ordered or not closed (3.5).
func (s *Store) undone() map[journal.JobID]bool {
	out := map[journal.JobID]bool{}
	for _, j := range s.jobs {
		if j.Flow.Name == flow.UndoName && j.Parent != nil && !j.State.Closed() && j.State != journal.JobExpired {
			out[j.Parent.Job] = true
		}
	}
	for _, rows := range s.rows {
		for _, r := range rows {
			if r.Undo && !r.Sender.IsZero() {
				out[r.Sender] = true
			}
		}
	}
	return out
}

// limits count how many rows of each table may still be removed.
type limits struct{ instances, receipts, rows, woken, entries, effects, payloads, letters int }

// remove deletes what belonged to an expired job.
func (s *Store) remove(u *undo, j *job, left *limits) {
	purge(u, j.instances, &left.instances)
	purge(u, j.receipts, &left.receipts)
	for _, g := range sortedIDs(s.rows[j.ID]) {
		if left.rows > 0 {
			s.dropRow(u, j.ID, g)
			left.rows--
		}
	}
	purge(u, j.woken, &left.woken)
	for _, g := range sortedIDs(j.chains) {
		records := j.chains[g]
		n := min(len(records), left.entries)
		if left.entries -= n; n == len(records) {
			drop(u, j.chains, g)
		} else {
			put(u, j.chains, g, records[:len(records)-n])
		}
	}
	purge(u, j.effects, &left.effects)
	purge(u, j.payloads, &left.payloads)
	kept := slices.DeleteFunc(slices.Clone(s.letters), func(l *letter) bool {
		gone := l.view.Letter.Job == j.ID && left.letters > 0
		if gone {
			left.letters--
		}
		return gone
	})
	if len(kept) < len(s.letters) {
		set(u, &s.letters, kept)
	}
	lettered := slices.ContainsFunc(kept, func(l *letter) bool { return l.view.Letter.Job == j.ID })
	if !lettered && len(j.instances)+len(j.receipts)+len(s.rows[j.ID])+len(j.woken)+len(j.chains)+len(j.effects)+len(j.payloads) == 0 {
		set(u, &j.expires, collation.Never)
	}
}

// bare says of a tombstone that nothing else is left of its job, and that nobody
// is looking at it.
func (s *Store) bare(j *job) bool {
	return j.expires == collation.Never && len(s.rows[j.ID]) == 0 && s.owner(j.ID) == nil
}

// purge deletes members of a table that nobody reads any more: which of them
// makes no difference.
func purge[K comparable, V any](u *undo, m map[K]V, left *int) {
	for k := range m {
		if *left == 0 {
			return
		}
		drop(u, m, k)
		*left--
	}
}

// Extend implements store.Engine: there is always room.
func (s *Store) Extend(context.Context) error { return nil }

// Prune implements store.Engine.
func (s *Store) Prune(_ context.Context, limit int) (int, error) {
	n := 0
	err := s.write("prune", func(u *undo) error {
		n = s.pruneMarkers(u, limit)
		oldest := s.now() - micros(store.SignalAge)
		left := limit
		for _, g := range sortedIDs(s.signals) {
			if x := s.signals[g]; left > 0 && x.at < oldest && x.state != store.SignalKept {
				drop(u, s.signals, g)
				left--
			}
		}
		n += limit - left
		oldest, left = s.now()-micros(store.TombAge), limit
		for _, id := range sortedIDs(s.jobs) {
			j := s.jobs[id]
			if left > 0 && j.replaced != collation.Never && j.replaced < oldest && s.bare(j) {
				drop(u, s.jobs, id)
				left--
			}
		}
		n += limit - left
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// pruneMarkers removes markers that are older than a day (J4).
func (s *Store) pruneMarkers(u *undo, limit int) int {
	n := 0
	oldest := s.now() - micros(store.MarkerAge)
	markers := slices.SortedFunc(maps.Keys(s.markers), func(a, b marker) int {
		return cmp.Or(cmp.Compare(s.markers[a], s.markers[b]), compareIDs(a.session, b.session), cmp.Compare(a.seq, b.seq))
	})
	for _, m := range markers[:min(len(markers), limit)] {
		if s.markers[m] < oldest {
			drop(u, s.markers, m)
			n++
		}
	}
	return n
}
