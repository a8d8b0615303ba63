package quiputest

import (
	"context"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// workerStore is the store as one worker process sees it: a call fails once the process is dead,
// and those about effects pass the boundaries at which it may die.
type workerStore struct {
	store.Worker
	p *process
}

// does carries out a call of a process that lives.
func does[T any](ctx context.Context, s *workerStore, call func() (T, error)) (out T, err error) {
	if err := s.p.alive(ctx); err != nil {
		return out, err
	}
	return call()
}

// Lease implements store.Worker.
func (s *workerStore) Lease(
	ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	return does(ctx, s, func() (store.Lease, error) { return s.Worker.Lease(ctx, job, request, turn, holder, session) })
}

// Keep implements store.Worker.
func (s *workerStore) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	return does(ctx, s, func() (store.Lease, error) { return s.Worker.Keep(ctx, l) })
}

// HandBack implements store.Worker.
func (s *workerStore) HandBack(ctx context.Context, l store.Lease) error {
	_, err := does(ctx, s, func() (any, error) { return nil, s.Worker.HandBack(ctx, l) })
	return err
}

// Input implements store.Worker.
func (s *workerStore) Input(ctx context.Context, job journal.JobID, request journal.GUID) ([]byte, error) {
	return does(ctx, s, func() ([]byte, error) { return s.Worker.Input(ctx, job, request) })
}

// PutPayload implements store.Worker.
func (s *workerStore) PutPayload(ctx context.Context, job journal.JobID, digest journal.Digest, body []byte) error {
	_, err := does(ctx, s, func() (any, error) { return nil, s.Worker.PutPayload(ctx, job, digest, body) })
	return err
}

// Effects implements store.Worker.
func (s *workerStore) Effects(
	ctx context.Context, job journal.JobID, request journal.GUID,
) ([]store.EffectRow, error) {
	return does(ctx, s, func() ([]store.EffectRow, error) { return s.Worker.Effects(ctx, job, request) })
}

// Pauses implements store.Worker.
func (s *workerStore) Pauses(ctx context.Context, job journal.JobID, request journal.GUID) ([]store.Pause, error) {
	return does(ctx, s, func() ([]store.Pause, error) { return s.Worker.Pauses(ctx, job, request) })
}

// at makes a boundary of an effect.
func at(l *store.Lease, e *journal.Effect, p point) func(*crash) boundary {
	return func(c *crash) boundary { return c.within(l, e, p) }
}

// StartEffect implements store.Worker.
func (s *workerStore) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (store.EffectRow, bool, error) {
	before, after := pointStarting, pointStarted
	if e.Class == store.ClassUndo {
		before, after = pointUndoing, pointUndone
	}
	if err := s.p.pass(ctx, at(&l, &e, before)); err != nil {
		return store.EffectRow{}, false, err
	}
	row, taken, err := s.Worker.StartEffect(ctx, l, e)
	if err == nil {
		err = s.p.pass(ctx, at(&l, &e, after))
	}
	return row, taken, err
}

// FinishEffect implements store.Worker.
func (s *workerStore) FinishEffect(
	ctx context.Context, l store.Lease, e journal.Effect, notDone bool) (store.EffectRow, error,
) {
	if err := s.p.pass(ctx, at(&l, &e, pointEnded)); err != nil {
		return store.EffectRow{}, err
	}
	row, err := s.Worker.FinishEffect(ctx, l, e, notDone)
	if err == nil {
		err = s.p.pass(ctx, at(&l, &e, pointRecorded))
	}
	return row, err
}

// SendOutcome implements store.Worker; it waits, so that the boundaries come in one order.
func (s *workerStore) SendOutcome(
	ctx context.Context, l store.Lease, e journal.Effect, ended func(store.EffectRow, error),
) {
	ended(s.FinishEffect(ctx, l, e, false))
}

// TxEffect implements store.Worker. If the process dies before the commit, the body's writes are
// rolled back.
func (s *workerStore) TxEffect(
	ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall) (row store.EffectRow, err error,
) {
	if err := s.p.alive(ctx); err != nil {
		return row, err
	}
	end, committed := func(bool) {}, false
	defer func() { end(committed) }()
	row, err = s.Worker.TxEffect(ctx, l, e, func(ctx context.Context, tx any) (store.TxEnd, error) {
		if begin := s.p.w.cfg.begin; begin != nil {
			end(false) // the body runs again
			tx, end = begin(ctx)
		}
		out, err := call(ctx, tx)
		if err == nil {
			err = s.p.pass(ctx, at(&l, &e, pointEnded))
		}
		return out, err
	})
	if err != nil {
		return row, err
	}
	committed = row.State == store.EffectCompleted && row.Error == nil && row.Holder == l.Holder
	return row, s.p.pass(ctx, at(&l, &e, pointRecorded))
}
