package effectstest

import (
	"context"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
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
	var out collation.Effected
	err := s.on(ctx, "StartEffect", l.Request, func(r *request) (err error) {
		out, err = r.Start(l, e, collation.Mode{})
		return err
	})
	return out.EffectRow, out.Taken, err
}

// FinishEffect implements store.Worker.
func (s *Store) FinishEffect(
	ctx context.Context, l store.Lease, e journal.Effect, notDone bool) (store.EffectRow, error,
) {
	var out collation.Effected
	err := s.on(ctx, "FinishEffect", l.Request, func(r *request) (err error) {
		out, err = r.Finish(l, e, notDone, collation.Mode{})
		return err
	})
	return out.EffectRow, err
}

// SendOutcome implements store.Worker.
func (s *Store) SendOutcome(ctx context.Context, l store.Lease, e journal.Effect, ended func(store.EffectRow, error)) {
	ended(s.FinishEffect(context.WithoutCancel(ctx), l, e, false))
}

// TxEffect implements store.Worker; the handle is nil.
func (s *Store) TxEffect(
	ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall) (store.EffectRow, error,
) {
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
	e.Result, e.Error = end.Result, end.Error
	return s.FinishEffect(ctx, l, e, end.NotDone)
}

// ended is an effect that has an outcome, or nil.
func (s *Store) ended(id journal.GUID, key journal.Digest) *store.EffectRow {
	for _, row := range s.Rows(id) {
		if row.Key == key && row.State != store.EffectStarted {
			return &row
		}
	}
	return nil
}

// Decide changes the recorded state of an effect of a request, as an operator's
// decision does (E10).
func (s *Store) Decide(id journal.GUID, key journal.Digest, f func(*store.EffectRow)) {
	s.change(id, func(r *request) { f(&r.Chain.Effects[key].EffectRow) })
}
