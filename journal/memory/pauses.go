package memory

import (
	"context"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// came are the pauses of one request that have come, in the order in which they did.
// A function asks for all of them each time that it wakes, so they are kept as they
// are read.
type came struct {
	resolved []*collation.ResolvedWait
	read     []store.Pause // of resolved, as far as somebody has asked
	known    map[journal.PauseRef]bool
}

// wake records a pause that has come (E12).
func (j *job) wake(u *undo, w *collation.ResolvedWait) error {
	if w == nil {
		return nil
	}
	if j.resolved[w.GUID] != nil {
		return lost("pause %s is recorded", w.GUID)
	}
	w = clone(w)
	put(u, j.resolved, w.GUID, w)
	of := j.came[w.Request]
	if of == nil {
		of = &came{known: map[journal.PauseRef]bool{}}
		put(u, j.came, w.Request, of)
	}
	set(u, &of.resolved, append(of.resolved, w))
	return nil
}

// pauses are those of a request that have come. Nobody may change them.
func (j *job) pauses(request journal.GUID) (all []store.Pause, known map[journal.PauseRef]bool) {
	of := j.came[request]
	if of == nil {
		return nil, nil
	}
	for _, w := range of.resolved[len(of.read):] {
		of.read = append(of.read, store.Pause{PauseRef: w.PauseRef, Seq: w.Seq, Response: j.entry(w.Seq).Response})
		of.known[w.PauseRef] = true
	}
	return of.read[:len(of.read):len(of.read)], of.known
}

// Pauses implements store.Requests.
func (s *Store) Pauses(_ context.Context, id journal.JobID, request journal.GUID) ([]store.Pause, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.living(id)
	if j == nil {
		return nil, nil
	}
	all, came := j.pauses(request)
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

// unwake takes a resolved wait away. The request's others are read again.
func (j *job) unwake(u *undo, g journal.GUID) {
	w := j.resolved[g]
	if w == nil {
		return
	}
	drop(u, j.resolved, g)
	others := slices.DeleteFunc(slices.Clone(j.came[w.Request].resolved), func(x *collation.ResolvedWait) bool { return x == w })
	put(u, j.came, w.Request, &came{resolved: others, known: map[journal.PauseRef]bool{}})
}
