package effectstest

import (
	"context"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

var _ store.Worker = (*Store)(nil)

// does carries out an operation, unless it fails before.
func does[T any](ctx context.Context, s *Store, op string, do func() (T, error)) (out T, err error) {
	if err := s.begin(ctx, op); err != nil {
		return out, err
	}
	return do()
}

// Effects implements store.Worker.
func (s *Store) Effects(ctx context.Context, job journal.JobID, id journal.GUID) ([]store.EffectRow, error) {
	return does(ctx, s, "Effects", func() ([]store.EffectRow, error) { return s.worker.Effects(ctx, job, id) })
}

// Pauses implements store.Worker.
func (s *Store) Pauses(ctx context.Context, job journal.JobID, id journal.GUID) ([]store.Pause, error) {
	return does(ctx, s, "Pauses", func() ([]store.Pause, error) { return s.worker.Pauses(ctx, job, id) })
}

// StartEffect implements store.Worker.
func (s *Store) StartEffect(
	ctx context.Context, l store.Lease, e journal.Effect,
) (row store.EffectRow, taken bool, err error) {
	row, err = does(ctx, s, "StartEffect", func() (row store.EffectRow, err error) {
		row, taken, err = s.worker.StartEffect(ctx, l, e)
		return row, err
	})
	return row, taken, err
}

// FinishEffect implements store.Worker.
func (s *Store) FinishEffect(
	ctx context.Context, l store.Lease, e journal.Effect, notDone bool,
) (store.EffectRow, error) {
	return does(ctx, s, "FinishEffect", func() (store.EffectRow, error) { return s.worker.FinishEffect(ctx, l, e, notDone) })
}

// SendOutcome implements store.Worker.
func (s *Store) SendOutcome(
	ctx context.Context, l store.Lease, e journal.Effect, ended func(store.EffectRow, error),
) {
	ended(s.FinishEffect(context.WithoutCancel(ctx), l, e, false))
}

// TxEffect implements store.Worker; the handle is a *memstore.EffectTx.
func (s *Store) TxEffect(
	ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall,
) (store.EffectRow, error) {
	return does(ctx, s, "TxEffect", func() (store.EffectRow, error) { return s.worker.TxEffect(ctx, l, e, call) })
}

// Lease implements store.Worker.
func (s *Store) Lease(
	ctx context.Context, job journal.JobID, id journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	return does(ctx, s, "Lease", func() (store.Lease, error) { return s.worker.Lease(ctx, job, id, turn, holder, session) })
}

// Keep implements store.Worker.
func (s *Store) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	return does(ctx, s, "Keep", func() (store.Lease, error) { return s.worker.Keep(ctx, l) })
}

// HandBack implements store.Worker.
func (s *Store) HandBack(ctx context.Context, l store.Lease) error {
	_, err := does(ctx, s, "HandBack", func() (any, error) { return nil, s.worker.HandBack(ctx, l) })
	return err
}

// Input implements store.Worker.
func (s *Store) Input(ctx context.Context, job journal.JobID, id journal.GUID) ([]byte, error) {
	return does(ctx, s, "Input", func() ([]byte, error) { return s.worker.Input(ctx, job, id) })
}

// PutPayload implements store.Worker.
func (s *Store) PutPayload(ctx context.Context, job journal.JobID, digest journal.Digest, body []byte) error {
	_, err := does(ctx, s, "PutPayload", func() (any, error) { return nil, s.worker.PutPayload(ctx, job, digest, body) })
	return err
}
