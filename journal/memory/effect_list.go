package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Effects implements store.Requests.
func (s *Store) Effects(_ context.Context, id journal.JobID, request journal.GUID) ([]store.EffectRow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.living(id)
	if j == nil {
		return nil, nil
	}
	return s.effectRows(j, func(f *collation.Effect) bool { return f.Request == request }), nil
}

// JobEffects implements store.Client.
func (s *Store) JobEffects(_ context.Context, id journal.JobID) ([]store.JobEffect, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.living(id)
	if j == nil {
		return nil, nil
	}
	return s.placed(j, func(*collation.Effect) bool { return true }), nil
}

// FindEffect implements store.Client.
func (s *Store) FindEffect(_ context.Context, key journal.Digest) ([]store.JobEffect, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []store.JobEffect
	for _, id := range sortedIDs(s.jobs) {
		if j := s.living(id); j != nil {
			all = append(all, s.placed(j, func(f *collation.Effect) bool { return f.Key == key })...)
		}
	}
	return all, nil
}

// placed lists effects with their places, in the order of their first entries, which name the
// places.
func (s *Store) placed(j *job, want func(*collation.Effect) bool) []store.JobEffect {
	found := j.effectsWhere(want)
	first := func(f *collation.Effect) *journal.Entry { return j.entryOf(f.Request, f.Seq) }
	slices.SortStableFunc(found, func(a, b *collation.Effect) int { return cmp.Compare(first(a).Time, first(b).Time) })
	var all []store.JobEffect
	for _, f := range found {
		e := first(f)
		all = append(all, store.JobEffect{
			EffectRow: s.effectRow(j, f), Job: j.ID, Request: f.Request, Activity: e.Activity, DAD: e.DAD,
		})
	}
	return all
}
