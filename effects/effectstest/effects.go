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

// Pauses implements store.Worker.
func (s *Store) Pauses(ctx context.Context, _ journal.JobID, id journal.GUID) ([]store.Pause, error) {
	if err := s.begin(ctx, "Pauses"); err != nil {
		return nil, err
	}
	return s.Waits(id), nil
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
	if r.behind(&l) {
		return store.EffectRow{}, false, store.ErrBehind
	}
	if err := r.hold(&l); err != nil {
		return store.EffectRow{}, false, err
	}
	if row := r.find(e.Key); row != nil {
		taken := row.State == store.EffectStarted && row.Fence < l.Fence && row.Class != store.ClassUndo
		if taken {
			row.Fence, row.Holder = l.Fence, l.Holder
		}
		return *row, taken, nil
	}
	row := store.EffectRow{
		Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, Position: e.Position,
		State: store.EffectStarted, Fence: l.Fence, Holder: l.Holder, Live: r.live,
	}
	r.add(row)
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
	if r.behind(&l) {
		return store.EffectRow{}, store.ErrBehind
	}
	row := r.find(e.Key)
	if row == nil {
		if e.Class != "pure" || r.gone {
			return store.EffectRow{}, store.ErrStale
		}
		if err := r.hold(&l); err != nil {
			return store.EffectRow{}, err
		}
		r.add(store.EffectRow{
			Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, Position: e.Position, State: store.EffectStarted,
		})
		row = &r.effects[len(r.effects)-1]
	}
	if row.State != store.EffectStarted {
		return *row, nil
	}
	row.State, row.Result, row.Error = store.EffectCompleted, e.Result, e.Error
	row.Fence, row.Holder = l.Fence, l.Holder
	if notDone {
		row.State = store.EffectNotDone
	}
	return *row, nil
}

// SendOutcome implements store.Worker.
func (s *Store) SendOutcome(l store.Lease, e journal.Effect, ended func(store.EffectRow, error)) {
	ended(s.FinishEffect(context.Background(), l, e, false))
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
	if err := r.hold(&l); err != nil {
		return store.EffectRow{}, err
	}
	if row := r.find(e.Key); row != nil {
		return *row, nil
	}
	row := store.EffectRow{
		Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, State: store.EffectCompleted, Result: end.Result, Error: end.Error,
		Position: e.Position, Fence: l.Fence, Holder: l.Holder,
	}
	if end.NotDone {
		row.State = store.EffectNotDone
	}
	r.add(row)
	return row, nil
}

// behind says that the outcome that the run has sent last is not recorded; the caller holds mu.
func (r *request) behind(l *store.Lease) bool {
	if l.After.IsZero() {
		return false
	}
	f := r.find(l.After)
	return f == nil || f.State != store.EffectCompleted || f.Holder != l.Holder
}

// hold checks the lease of a run, or takes it for a run that has none yet
// (store.Lease.Fresh); the caller holds mu.
func (r *request) hold(l *store.Lease) error {
	switch {
	case r.live && r.holder == l.Holder && (r.fence == l.Fence || l.Fresh && r.fence == l.Fence+1):
	case r.live || r.fence != l.Fence:
		return store.ErrStale
	case l.Fresh:
		r.take(l.Holder)
	default: // the lease was handed back, and nobody has taken it since
		r.holder, r.live = l.Holder, true
	}
	l.Fence = r.fence
	return nil
}

// ended is an effect that has an outcome, or nil.
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

func (r *request) add(row store.EffectRow) {
	r.byKey[row.Key] = len(r.effects)
	r.effects = append(r.effects, row)
}

func (r *request) find(key journal.Digest) *store.EffectRow {
	if i, ok := r.byKey[key]; ok {
		return &r.effects[i]
	}
	return nil
}

// Void withdraws the result of a completed effect, as an operator does.
func (s *Store) Void(id journal.GUID, key journal.Digest) {
	s.change(id, func(r *request) {
		row := r.find(key)
		row.State, row.Result = store.EffectNotDone, nil
		row.Error = &journal.Failure{Class: store.FailureVoided, Message: "voided"}
	})
}
