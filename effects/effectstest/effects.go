package effectstest

import (
	"context"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Effects implements store.Worker.
func (s *Store) Effects(ctx context.Context, _ journal.JobID, id journal.GUID) ([]store.EffectRow, error) {
	if err := s.begin(ctx, "Effects"); err != nil {
		return nil, err
	}
	return s.Rows(id), nil
}

// StartEffect implements store.Worker.
func (s *Store) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (store.EffectRow, bool, error) {
	if err := s.begin(ctx, "StartEffect"); err != nil {
		return store.EffectRow{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.row(l.Request, l.Turn)
	if err != nil {
		return store.EffectRow{}, false, err
	}
	if r.fence != l.Fence || r.holder != l.Holder {
		return store.EffectRow{}, false, store.ErrStale
	}
	if row := r.find(e.Key); row != nil {
		taken := row.State == store.EffectStarted && row.Fence < l.Fence
		if taken {
			row.Fence, row.Holder = l.Fence, l.Holder
		}
		return *row, taken, nil
	}
	row := store.EffectRow{
		Key: e.Key, Name: e.Name, Class: e.Class, N: e.N,
		State: store.EffectStarted, Fence: l.Fence, Holder: l.Holder, Live: r.live,
	}
	r.effects = append(r.effects, row)
	return row, false, nil
}

// FinishEffect implements store.Worker.
func (s *Store) FinishEffect(ctx context.Context, l store.Lease, e journal.Effect, notDone bool) (store.EffectRow, error) {
	if err := s.begin(ctx, "FinishEffect"); err != nil {
		return store.EffectRow{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[l.Request]
	row := r.find(e.Key)
	if row == nil {
		if e.Class != "pure" || r.gone || r.fence != l.Fence {
			return store.EffectRow{}, store.ErrStale
		}
		r.effects = append(r.effects, store.EffectRow{Key: e.Key, Name: e.Name, Class: e.Class, State: store.EffectStarted})
		row = &r.effects[len(r.effects)-1]
	}
	if row.State != store.EffectStarted {
		return *row, nil
	}
	row.State, row.Result, row.Error = store.EffectCompleted, e.Result, e.Error
	if notDone {
		row.State = store.EffectNotDone
	}
	return *row, nil
}

func (r *request) find(key journal.Digest) *store.EffectRow {
	for i := range r.effects {
		if r.effects[i].Key == key {
			return &r.effects[i]
		}
	}
	return nil
}
