package work

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/fault"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// EarlyTopics lists the topics that were registered with workers.Early, sorted.
func EarlyTopics(reg *workers.Registry) (topics []string) {
	all, _, _ := port.Registered(reg)
	for _, h := range all {
		if h.Early {
			topics = append(topics, h.Topic)
		}
	}
	return topics
}

// store is the store of the run's effects. Before the cause has committed they wait (L7).
func (r *run) store() store.Worker {
	if r.cause == nil {
		return r.rt.cfg.Store
	}
	return gated{r.rt.cfg.Store, r.cause, r}
}

// offered notes how long after its begin the run first had something for the batch of its cause: an
// answer, or the start of an effect.
func (r *run) offered() { r.first.CompareAndSwap(0, int64(max(time.Since(r.called), 1))) }

// offer gives the response to the batch of the run's cause, if that takes it. Otherwise it waits
// until the cause has committed. It reports whether the response is still to be sent.
func (r *run) offer(response *wire.Response) (send bool) {
	if r.cause == nil {
		return true
	}
	fault.At(fault.K19, r.h.Topic)
	if response.Ref == "" {
		m := r.message(response)
		m.Holder = r.own.Holder
		if m.Validate(r.rt.cfg.Bus.MaxPayload()) == nil && r.cause.Answer(&m, func() { r.settle(r.d.Ack) }) {
			return false
		}
	}
	if err := r.cause.Wait(context.Background()); err != nil { // it comes with the end of a commit
		r.drop()
		return false
	}
	return true
}

// drop ends a run whose cause did not commit: there is no row that names it.
func (r *run) drop() {
	r.returned.Store(true)
	r.settle(r.d.Ack)
}

// gated is the store of a run that may be early: what it writes, and the lease, wait until the cause
// has committed (L7). Errors: early.ErrUncommitted, and those of the store.
type gated struct {
	store.Worker
	cause *early.Cause
	run   *run
}

// Lease implements store.Requests.
func (g gated) Lease(
	ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	if err := g.cause.Wait(ctx); err != nil {
		return store.Lease{}, err
	}
	return g.Worker.Lease(ctx, job, request, turn, holder, session)
}

// Keep implements store.Requests.
func (g gated) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	if err := g.cause.Wait(ctx); err != nil {
		return store.Lease{}, err
	}
	return g.Worker.Keep(ctx, l)
}

// HandBack implements store.Requests.
func (g gated) HandBack(ctx context.Context, l store.Lease) error {
	if err := g.cause.Wait(ctx); err != nil {
		return err
	}
	return g.Worker.HandBack(ctx, l)
}

// PutPayload implements store.Worker.
func (g gated) PutPayload(ctx context.Context, job journal.JobID, digest journal.Digest, body []byte) error {
	if err := g.cause.Wait(ctx); err != nil {
		return err
	}
	return g.Worker.PutPayload(ctx, job, digest, body)
}

// StartEffect implements store.Worker. The first start commits with the cause, if its batch takes it (L7).
func (g gated) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (store.EffectRow, bool, error) {
	x := early.Start{Lease: l, Effect: e}
	g.run.offered()
	rides := g.cause.Start(&x)
	if err := g.cause.Wait(ctx); err != nil {
		return store.EffectRow{}, false, err
	}
	if rides && x.Row.State != "" {
		return x.Row, x.Taken, nil
	}
	return g.Worker.StartEffect(ctx, l, e)
}

// FinishEffect implements store.Worker.
func (g gated) FinishEffect(
	ctx context.Context, l store.Lease, e journal.Effect, notDone bool) (store.EffectRow, error,
) {
	if err := g.cause.Wait(ctx); err != nil {
		return store.EffectRow{}, err
	}
	return g.Worker.FinishEffect(ctx, l, e, notDone)
}

// SendOutcome implements store.Worker. Only a pure effect can have an outcome before its cause has
// committed.
func (g gated) SendOutcome(ctx context.Context, l store.Lease, e journal.Effect, ended func(store.EffectRow, error)) {
	if !g.cause.Open() {
		g.Worker.SendOutcome(ctx, l, e, ended)
		return
	}
	go func() {
		if err := g.cause.Wait(ctx); err != nil {
			ended(store.EffectRow{}, err)
			return
		}
		g.Worker.SendOutcome(ctx, l, e, ended)
	}()
}

// TxEffect implements store.Worker.
func (g gated) TxEffect(
	ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall) (store.EffectRow, error,
) {
	if err := g.cause.Wait(ctx); err != nil {
		return store.EffectRow{}, err
	}
	return g.Worker.TxEffect(ctx, l, e, call)
}
