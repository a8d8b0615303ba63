package journaltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

var _ store.Worker = Driven{}

// effectMode is the mode of workers' writes.
var effectMode = collation.Mode{Writer: "suite", Build: "test"}

// onChain decides on the effect of a request.
func onChain(of *store.Lease, e *journal.Effect, out *collation.Effected,
	decide func(*collation.Chain) (collation.Effected, error),
) item {
	want := store.Want{Chain: of.Key(), Effects: []journal.Digest{e.Key}}
	if !of.After.IsZero() {
		want.Effects = append(want.Effects, of.After)
	}
	return item{Want: want, decide: func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
		h := l.Chains[of.Key()]
		if h == nil {
			return nil, nil, fmt.Errorf("%w: the chain of request %s was not loaded", store.ErrBusy, of.Request)
		}
		x, err := decide(h)
		if err == nil {
			*out = x
		}
		return x.Plan, nil, err
	}}
}

// StartEffect implements store.Worker.
func (d Driven) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (store.EffectRow, bool, error) {
	var out collation.Effected
	x := onChain(&l, &e, &out, func(h *collation.Chain) (collation.Effected, error) {
		return h.Start(l, e, effectMode)
	})
	x.Past = l.Resumes
	err := d.transact(ctx, x)
	return out.EffectRow, out.Taken, err
}

func finish(l *store.Lease, e *journal.Effect, notDone bool, out *collation.Effected) item {
	return onChain(l, e, out, func(h *collation.Chain) (collation.Effected, error) {
		return h.Finish(*l, *e, notDone, effectMode)
	})
}

// FinishEffect implements store.Worker.
func (d Driven) FinishEffect(
	ctx context.Context, l store.Lease, e journal.Effect, notDone bool) (store.EffectRow, error,
) {
	if e.Class == store.ClassTx {
		return store.EffectRow{}, store.ErrRejected
	}
	var out collation.Effected
	err := d.transact(ctx, finish(&l, &e, notDone, &out))
	return out.EffectRow, err
}

// SendOutcome implements store.Worker; it waits.
func (d Driven) SendOutcome(ctx context.Context, l store.Lease, e journal.Effect, ended func(store.EffectRow, error)) {
	ended(d.FinishEffect(context.WithoutCancel(ctx), l, e, false))
}

// TxEffect implements store.Worker.
func (d Driven) TxEffect(
	ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall) (store.EffectRow, error,
) {
	if e.Class != store.ClassTx {
		return store.EffectRow{}, store.ErrRejected
	}
	var out collation.Effected
	stood, err := d.Body(ctx, l.Key(), e.Key, call, func(ctx context.Context, tx store.Tx, with store.TxEnd) error {
		e.Result, e.Error = with.Result, with.Error
		_, err := try(ctx, tx, []item{finish(&l, &e, with.NotDone, &out)})
		return err
	})
	switch {
	case err != nil:
		return store.EffectRow{}, err
	case stood != nil:
		return *stood, nil
	}
	return out.EffectRow, nil
}

// Lease implements store.Worker. As an engine would, it holds a request that ran too often.
func (d Driven) Lease(
	ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	l, err := d.Store.Lease(ctx, job, request, turn, holder, session)
	if errors.Is(err, store.ErrExhausted) {
		err = cmp.Or(d.transact(ctx,
			onJob(job, request, func(st *collation.State) (*collation.Plan, *collation.Need, error) {
				return collation.Exhaust(st, request, turn, effectMode)
			})), err)
	}
	return l, err
}

// PutPayload implements store.Worker. It commits without a Load.
func (d Driven) PutPayload(ctx context.Context, job journal.JobID, digest journal.Digest, body []byte) error {
	p, err := collation.PutPayload(job, digest, body)
	if err != nil {
		return err
	}
	c, err := d.Committer(ctx, true)
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.Commit(ctx, []store.Chained{{Plan: p}})
	if lost, ok := errors.AsType[*store.LostError](err); ok && len(lost.Jobs) > 0 {
		return fmt.Errorf("%w: job %s", store.ErrNotFound, job)
	}
	return err
}
