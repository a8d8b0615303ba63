package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// copyRow copies a row with its pauses, since a decision may mark them.
func copyRow(r *collation.Row) *collation.Row {
	c := clone(r)
	if c != nil {
		c.Pauses = slices.Clone(c.Pauses)
	}
	return c
}

// own copies a row for the store, since the plan's row belongs to the caller.
func own(r *collation.Row) *collation.Row {
	c := copyRow(r)
	c.Body, c.Input = slices.Clone(r.Body), slices.Clone(r.Input)
	return c
}

// wake records a pause that was resolved (E12).
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
func (s *Store) Pauses(_ context.Context, id journal.JobID, request journal.GUID) ([]store.Pause, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.living(id)
	if j == nil {
		return nil, nil
	}
	var all []store.Pause
	came := map[journal.PauseRef]bool{}
	for _, w := range j.resolved {
		if w.Request == request {
			came[w.PauseRef] = true
			all = append(all, store.Pause{PauseRef: w.PauseRef, Seq: w.Seq, Response: clone(j.entry(w.Seq).Response)})
		}
	}
	slices.SortFunc(all, func(a, b store.Pause) int { return cmp.Compare(a.Seq, b.Seq) })
	row := s.row(id, request)
	if row == nil {
		return all, nil
	}
	for i := range row.Pauses {
		if p := &row.Pauses[i]; !came[p.PauseRef] { // recorded, but not yet removed from the row by step 2
			all = append(all, store.Pause{PauseRef: p.PauseRef})
		}
	}
	return all, nil
}
