package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Effects lists the recorded effects of a request, in the order of their first entries.
func (s *Store) Effects(ctx context.Context, job journal.JobID, request journal.GUID) ([]store.EffectRow, error) {
	var all []store.EffectRow
	err := s.query(ctx, "effects_of_request", func() { all = nil }, func(v row) error {
		x, err := readEffect(v)
		if err == nil {
			all = append(all, *x)
		}
		return err
	}, pUUID(job), pUUID(request))
	return all, err
}

// JobEffects lists the recorded effects of all requests of a job, in the order of their first
// entries.
func (s *Store) JobEffects(ctx context.Context, job journal.JobID) ([]store.JobEffect, error) {
	return s.placed(ctx, "effects_placed", pUUID(job))
}

// FindEffect finds the effects of a key in all jobs.
func (s *Store) FindEffect(ctx context.Context, key journal.Digest) ([]store.JobEffect, error) {
	return s.placed(ctx, "effects_by_key", pDigest(key), pInt(partitionJobs))
}

// placed reads effects with their first entries, which say when and where each effect was.
func (s *Store) placed(ctx context.Context, name string, params ...[]byte) ([]store.JobEffect, error) {
	type placed struct {
		store.JobEffect
		time int64
	}
	var all []placed
	err := s.query(ctx, name, func() { all = nil }, func(v row) error {
		x, err := readEffect(v)
		if err != nil {
			return err
		}
		f := placed{JobEffect: store.JobEffect{EffectRow: *x, Job: v.job(effectWidth), Request: v.guid(effectWidth + 1)}}
		e, err := decode(f.Job, v.bytes(effectWidth+2))
		if err != nil {
			return err
		}
		f.Activity, f.DAD, f.time = e.Activity, e.DAD, e.Time
		all = append(all, f)
		return nil
	}, params...)
	// The rows come by request and seq; a stable sort keeps the chains of one time together.
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Or(slices.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.time, b.time)) })
	out := make([]store.JobEffect, len(all))
	for i := range all {
		out[i] = all[i].JobEffect
	}
	return out, err
}
