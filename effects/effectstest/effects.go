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

// TxEffect implements store.Worker; the handle is nil.
func (s *Store) TxEffect(ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall) (store.EffectRow, error) {
	if err := s.begin(ctx, "TxEffect"); err != nil {
		return store.EffectRow{}, err
	}
	if row := s.ended(l.Request, e.Key); row != nil {
		return *row, nil
	}
	end, err := call(ctx, nil)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return store.EffectRow{}, &store.TxError{Err: err}
	}
	if err := s.begin(ctx, "commit"); err != nil {
		return store.EffectRow{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.row(l.Request, l.Turn)
	if err != nil {
		return store.EffectRow{}, err
	}
	if r.fence != l.Fence || r.holder != l.Holder {
		return store.EffectRow{}, store.ErrStale
	}
	if row := r.find(e.Key); row != nil {
		return *row, nil
	}
	row := store.EffectRow{Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, State: store.EffectCompleted, Result: end.Result, Error: end.Error}
	if end.NotDone {
		row.State = store.EffectNotDone
	}
	r.effects = append(r.effects, row)
	return row, nil
}

// ended is an effect that has its outcome, or nil.
func (s *Store) ended(id journal.GUID, key journal.Digest) *store.EffectRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.rows[id].find(key)
	if row == nil || row.State == store.EffectStarted {
		return nil
	}
	ended := *row
	return &ended
}

func (r *request) find(key journal.Digest) *store.EffectRow {
	for i := range r.effects {
		if r.effects[i].Key == key {
			return &r.effects[i]
		}
	}
	return nil
}
