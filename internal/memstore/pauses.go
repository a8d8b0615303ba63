package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// wake records a pause that has come (E12).
func (j *job) wake(u *undo, w *collation.ResolvedWait) error {
	if w == nil {
		return nil
	}
	if j.resolved[w.GUID] != nil {
		return lost("pause %s is recorded", w.GUID)
	}
	put(u, j.resolved, w.GUID, clone(w))
	return nil
}

// Pauses implements store.Requests.
func (s *Store) Pauses(_ context.Context, id journal.JobID, request journal.GUID) (all []store.Pause, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.living(id)
	if j == nil {
		return nil, nil
	}
	came := map[journal.PauseRef]bool{}
	for _, w := range j.resolved {
		if w.Request == request {
			all = append(all, store.Pause{PauseRef: w.PauseRef, Seq: w.Seq, Response: j.entry(w.Seq).Response})
			came[w.PauseRef] = true
		}
	}
	slices.SortFunc(all, func(a, b store.Pause) int { return cmp.Compare(a.Seq, b.Seq) })
	if row := s.row(id, request); row != nil {
		for i := range row.Pauses {
			if p := &row.Pauses[i]; !came[p.PauseRef] { // recorded, but not yet removed from the row by step 2
				all = append(all, store.Pause{PauseRef: p.PauseRef})
			}
		}
	}
	return all, nil
}
