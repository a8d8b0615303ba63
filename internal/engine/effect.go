package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// effect is the start or the end of one effect. It reads the chain of the request, with the
// effect. It decides by Chain.Start or Chain.Finish. It writes the effect, at most one entry of
// the chain, and the changes of the request's row (E4, J8).
type effect struct {
	of     *store.Lease
	key    journal.Digest
	begins bool
	decide func(*collation.Chain, collation.Mode) (collation.Effected, error)
	out    collation.Effected
	loads  bool // what is cached of its chain did not do: it needs a load
}

func (x *effect) want() []store.Want {
	w := store.Want{Chain: x.of.Key(), Effects: []journal.Digest{x.key}, Past: x.begins && x.of.Resumes}
	if !x.of.After.IsZero() {
		w.Effects = append(w.Effects, x.of.After)
	}
	return []store.Want{w}
}

func (x *effect) ask(b *batch) error {
	chain := b.loaded.Chains[x.of.Key()]
	if chain == nil {
		return store.ErrBusy // it is busy or gone: a patient load finds out
	}
	out, err := x.decide(chain, b.mode)
	if b.guessed.chains[x.of.Key()] != nil && (err != nil || out.Plan == nil) {
		// Only a load shows that nothing is to be written.
		x.loads = true
		return errLater
	}
	if err != nil {
		return fmt.Errorf("request %s: %w", x.of.Request, err)
	}
	if x.out = out; out.Plan != nil {
		b.write(out.Plan)
	}
	return nil
}

// Worker is the store through which handlers of this process write their effects. They share
// commits with all other work (W3). It works while Run runs.
func (c *Committer) Worker() store.Worker { return worker{c.cfg.Store, c} }

// worker is a store.Worker.
type worker struct {
	store.Requests
	c *Committer
}

// effect has the start or the end of an effect committed.
func (w worker) effect(ctx context.Context, name string, x *effect, size int) (collation.Effected, error) {
	one := w.call(name, x, size)
	if w.c.do(ctx, one); one.err != nil {
		return collation.Effected{}, one.err
	}
	return x.out, nil
}

// call is the call that has an effect committed.
func (w worker) call(name string, x *effect, size int) *call {
	one := &call{name: name, wants: x.want, effect: x, size: size}
	one.decides = func(b *batch) error {
		if own := w.c.cfg.Session; own != nil && !own.Alive(x.of.Session) {
			if x.begins {
				return fmt.Errorf("request %s: %w: the session of this process is not alive", x.of.Request, store.ErrStale)
			}
			x.of.Fresh = false // it takes no lease
		}
		return x.ask(b)
	}
	return one
}

// StartEffect implements store.Worker.
func (w worker) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (store.EffectRow, bool, error) {
	out, err := w.effect(ctx, "start effect "+e.Name, starting(&l, e), 0)
	return out.EffectRow, out.Taken, err
}

// FinishEffect implements store.Worker.
func (w worker) FinishEffect(
	ctx context.Context, l store.Lease, e journal.Effect, notDone bool) (store.EffectRow, error,
) {
	if e.Class == store.ClassTx {
		return store.EffectRow{}, fmt.Errorf("finish effect %s: %w: it is of class tx", e.Name, store.ErrRejected)
	}
	out, err := w.effect(ctx, "finish effect "+e.Name, finish(&l, e, notDone), len(e.Result))
	return out.EffectRow, err
}

// SendOutcome implements store.Worker.
func (w worker) SendOutcome(_ context.Context, l store.Lease, e journal.Effect, ended func(store.EffectRow, error)) {
	x := finish(&l, e, false)
	one := w.call("finish effect "+e.Name, x, len(e.Result))
	one.answered = func(err error) {
		if err != nil {
			ended(store.EffectRow{}, err)
			return
		}
		ended(x.out.EffectRow, nil)
	}
	w.c.send(one)
}

func starting(l *store.Lease, e journal.Effect) *effect {
	return &effect{
		of: l, key: e.Key, begins: true,
		decide: func(h *collation.Chain, mode collation.Mode) (collation.Effected, error) {
			return h.Start(*l, e, mode)
		},
	}
}

func finish(l *store.Lease, e journal.Effect, notDone bool) *effect {
	return &effect{
		of: l, key: e.Key,
		decide: func(h *collation.Chain, mode collation.Mode) (collation.Effected, error) {
			return h.Finish(*l, e, notDone, mode)
		},
	}
}

// TxEffect implements store.Worker: the outcome commits in the transaction of its body.
func (w worker) TxEffect(
	ctx context.Context, l store.Lease, e journal.Effect, body store.TxCall) (store.EffectRow, error,
) {
	if e.Class != store.ClassTx {
		return store.EffectRow{}, fmt.Errorf("tx effect %s: %w: it is of class %s", e.Name, store.ErrRejected, e.Class)
	}
	defer w.c.cache.drop(l.Job)
	var x *effect
	stood, err := w.c.cfg.Store.Body(ctx, l.Key(), e.Key, body,
		func(ctx context.Context, tx store.Tx, with store.TxEnd) error {
			e.Result, e.Error = with.Result, with.Error
			x = finish(&l, e, with.NotDone)
			loaded, err := tx.Load(ctx, x.want(), true)
			if err != nil {
				return err
			}
			b := w.c.joined(loaded)
			if err := x.ask(b); err != nil || len(b.plans) == 0 {
				return err
			}
			return tx.Commit(ctx, b.plans)
		})
	lost, named := errors.AsType[*store.LostError](err)
	switch {
	case named && lost.Session:
		return store.EffectRow{}, fmt.Errorf("tx effect %s: %w: the session of this process has ended", e.Name, store.ErrStale)
	case err != nil:
		return store.EffectRow{}, err
	case stood != nil:
		return *stood, nil
	}
	return x.out.EffectRow, nil
}

// PutPayload implements store.Worker. The commit itself finds out whether the job exists.
func (w worker) PutPayload(ctx context.Context, job journal.JobID, digest journal.Digest, body []byte) error {
	p, err := collation.PutPayload(job, digest, body)
	if err != nil {
		return fmt.Errorf("payload: %w", err)
	}
	gone := false
	x := &call{
		name: "payload", size: len(body),
		lost: func(e *store.LostError) { gone = gone || slices.Contains(e.Jobs, job) },
		decides: func(b *batch) error {
			if gone {
				return fmt.Errorf("payload: %w: job %s", store.ErrNotFound, job)
			}
			b.write(p)
			return nil
		},
	}
	w.c.do(ctx, x)
	return x.err
}

// Keep implements store.Worker.
func (w worker) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	defer w.c.cache.drop(l.Job) // it changes the row (W6)
	return w.Requests.Keep(ctx, l)
}

// HandBack implements store.Worker.
func (w worker) HandBack(ctx context.Context, l store.Lease) error {
	defer w.c.cache.drop(l.Job)
	return w.Requests.HandBack(ctx, l)
}

// Lease implements store.Worker.
func (w worker) Lease(
	ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	defer w.c.cache.drop(job)
	return w.Requests.Lease(ctx, job, request, turn, holder, session)
}
