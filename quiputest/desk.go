package quiputest

import (
	"context"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// desk is the store for one worker process.
type desk struct {
	store.Worker
	p *process
}

// Lease implements store.Worker.
func (d *desk) Lease(
	ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	if err := d.p.alive(ctx); err != nil {
		return store.Lease{}, err
	}
	return d.Worker.Lease(ctx, job, request, turn, holder, session)
}

// Keep implements store.Worker.
func (d *desk) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	if err := d.p.alive(ctx); err != nil {
		return store.Lease{}, err
	}
	return d.Worker.Keep(ctx, l)
}

// HandBack implements store.Worker.
func (d *desk) HandBack(ctx context.Context, l store.Lease) error {
	if err := d.p.alive(ctx); err != nil {
		return err
	}
	return d.Worker.HandBack(ctx, l)
}

// Input implements store.Worker.
func (d *desk) Input(ctx context.Context, job journal.JobID, request journal.GUID) ([]byte, error) {
	if err := d.p.alive(ctx); err != nil {
		return nil, err
	}
	return d.Worker.Input(ctx, job, request)
}

// PutPayload implements store.Worker.
func (d *desk) PutPayload(ctx context.Context, job journal.JobID, digest journal.Digest, body []byte) error {
	if err := d.p.alive(ctx); err != nil {
		return err
	}
	return d.Worker.PutPayload(ctx, job, digest, body)
}

// Effects implements store.Worker.
func (d *desk) Effects(ctx context.Context, job journal.JobID, request journal.GUID) ([]store.EffectRow, error) {
	if err := d.p.alive(ctx); err != nil {
		return nil, err
	}
	return d.Worker.Effects(ctx, job, request)
}

// Pauses implements store.Worker.
func (d *desk) Pauses(ctx context.Context, job journal.JobID, request journal.GUID) ([]store.Pause, error) {
	if err := d.p.alive(ctx); err != nil {
		return nil, err
	}
	return d.Worker.Pauses(ctx, job, request)
}

// at makes a boundary of an effect.
func at(l *store.Lease, e *journal.Effect, p point) func(*crash) boundary {
	return func(c *crash) boundary { return c.within(l, e, p) }
}

// StartEffect implements store.Worker.
func (d *desk) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (store.EffectRow, bool, error) {
	before, after := pointStarting, pointStarted
	if e.Class == store.ClassUndo {
		before, after = pointUndoing, pointUndone
	}
	if err := d.p.pass(ctx, at(&l, &e, before)); err != nil {
		return store.EffectRow{}, false, err
	}
	row, taken, err := d.Worker.StartEffect(ctx, l, e)
	if err == nil {
		err = d.p.pass(ctx, at(&l, &e, after))
	}
	return row, taken, err
}

// FinishEffect implements store.Worker.
func (d *desk) FinishEffect(
	ctx context.Context, l store.Lease, e journal.Effect, notDone bool) (store.EffectRow, error,
) {
	if err := d.p.pass(ctx, at(&l, &e, pointEnded)); err != nil {
		return store.EffectRow{}, err
	}
	row, err := d.Worker.FinishEffect(ctx, l, e, notDone)
	if err == nil {
		err = d.p.pass(ctx, at(&l, &e, pointRecorded))
	}
	return row, err
}

// SendOutcome implements store.Worker; it waits, so that the boundaries come in one order.
func (d *desk) SendOutcome(ctx context.Context, l store.Lease, e journal.Effect, ended func(store.EffectRow, error)) {
	ended(d.FinishEffect(ctx, l, e, false))
}

// TxEffect implements store.Worker. If the process dies before the commit, the body's writes are
// rolled back.
func (d *desk) TxEffect(
	ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall) (row store.EffectRow, err error,
) {
	if err := d.p.alive(ctx); err != nil {
		return row, err
	}
	end, committed := func(bool) {}, false
	defer func() { end(committed) }()
	row, err = d.Worker.TxEffect(ctx, l, e, func(ctx context.Context, tx any) (store.TxEnd, error) {
		if begin := d.p.w.cfg.begin; begin != nil {
			end(false) // the body runs again
			tx, end = begin(ctx)
		}
		out, err := call(ctx, tx)
		if err == nil {
			err = d.p.pass(ctx, at(&l, &e, pointEnded))
		}
		return out, err
	})
	if err != nil {
		return row, err
	}
	committed = row.State == store.EffectCompleted && row.Error == nil && row.Holder == l.Holder
	return row, d.p.pass(ctx, at(&l, &e, pointRecorded))
}
