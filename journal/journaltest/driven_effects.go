package journaltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var _ store.Worker = Driven{}

// effectMode is the mode of workers' writes.
var effectMode = collation.Mode{Writer: "suite", Build: "test"}

func chainWant(l *store.Lease, e *journal.Effect) []store.Want {
	return []store.Want{{Chain: l.Key(), Effects: []journal.Digest{e.Key}, Past: l.Resumes}}
}

// onChain decides on the effect of a request, and sets out to the effect after it.
func onChain(of store.Lease, out *collation.Effected, decide func(*collation.Chain) (collation.Effected, error)) func(*attempt) error {
	return func(a *attempt) (err error) {
		h := a.Chains[of.Key()]
		if h == nil {
			return fmt.Errorf("%w: the chain of request %s was not loaded", store.ErrBusy, of.Request)
		}
		if *out, err = decide(h); err == nil && out.Plan != nil {
			a.write(out.Plan)
		}
		return err
	}
}

func (d Driven) effect(ctx context.Context, of store.Lease, e *journal.Effect, decide func(*collation.Chain) (collation.Effected, error)) (out collation.Effected, err error) {
	if err = d.transact(ctx, chainWant(&of, e), onChain(of, &out, decide)); err != nil {
		return collation.Effected{}, err
	}
	return out, nil
}

// StartEffect implements store.Worker.
func (d Driven) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (store.EffectRow, bool, error) {
	out, err := d.effect(ctx, l, &e, func(h *collation.Chain) (collation.Effected, error) { return h.Start(l, e, effectMode) })
	return out.EffectRow, out.Taken, err
}

// FinishEffect implements store.Worker.
func (d Driven) FinishEffect(ctx context.Context, l store.Lease, e journal.Effect, notDone bool) (store.EffectRow, error) {
	if e.Class == store.ClassTx {
		return store.EffectRow{}, store.ErrRejected
	}
	out, err := d.effect(ctx, l, &e, func(h *collation.Chain) (collation.Effected, error) { return h.Finish(l, e, notDone, effectMode) })
	return out.EffectRow, err
}

// TxEffect implements store.Worker.
func (d Driven) TxEffect(ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall) (store.EffectRow, error) {
	if e.Class != store.ClassTx {
		return store.EffectRow{}, store.ErrRejected
	}
	var out collation.Effected
	stood, err := d.Body(ctx, l.Job, e.Key, call, func(ctx context.Context, tx store.Tx, with store.TxEnd) error {
		e.Result, e.Error = with.Result, with.Error
		_, err := try(ctx, tx, chainWant(&l, &e), onChain(l, &out, func(h *collation.Chain) (collation.Effected, error) {
			return h.Finish(l, e, with.NotDone, effectMode)
		}))
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
	if !errors.Is(err, store.ErrExhausted) {
		return l, err
	}
	failed := d.transact(ctx, []store.Want{{Job: job, Row: request}}, func(a *attempt) error {
		st := a.States[job]
		if st == nil {
			return store.ErrStale
		}
		p, need, err := collation.Exhaust(st, request, turn, effectMode)
		if err == nil && !a.lacks(job, need) {
			a.enter(&st.Job, p)
		}
		return err
	})
	if failed != nil {
		return l, failed
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
