package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Effects lists the recorded effects of a request, in the order of their first entries.
func (s *Store) Effects(ctx context.Context, job journal.JobID, request journal.GUID) ([]store.EffectRow, error) {
	return readAll(ctx, s, "load_effects", func(v row) (store.EffectRow, error) {
		return readEffect(v[1:])
	}, arrays([]rowKey{{job, request}}, putKey)...)
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
	all, err := readAll(ctx, s, name, func(v row) (f placed, err error) {
		if f.EffectRow, err = readEffect(v); err != nil {
			return f, err
		}
		f.Job, f.Request = v.job(effectWidth), v.guid(effectWidth+1)
		e, err := decode(f.Job, v.bytes(effectWidth+2))
		if err == nil {
			f.Activity, f.DAD, f.time = e.Activity, e.DAD, e.Time
		}
		return f, err
	}, params...)
	// The rows come by request and seq; a stable sort keeps the chains of one time together.
	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(slices.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.time, b.time))
	})
	out := make([]store.JobEffect, len(all))
	for i := range all {
		out[i] = all[i].JobEffect
	}
	return out, err
}
