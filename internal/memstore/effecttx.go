package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// maxAttempts bounds how often the body of a Tx effect runs because of conflicts, as in Postgres.
const maxAttempts = 5

// errConflict says that another transaction has changed a value that this one read.
var errConflict = errors.New("memory: the transaction has read what another changed")

// EffectTx is the handle of the body of a Tx effect: the user's values, and the jobs and signals
// that it starts and sends. All of it commits together with the effect or not at all (E3, E17).
// If a value that the body read has changed by then, the body runs again in a new transaction.
// Use it only in the body and from one goroutine.
type EffectTx struct {
	s       *Store
	read    map[string]string
	written map[string]string
	plans   []store.Chained // from StartTx and SignalTx
}

// Get reads the transaction's own value, or else the committed one; "" if there is none.
func (t *EffectTx) Get(key string) string {
	if v, own := t.written[key]; own {
		return v
	}
	v, again := t.read[key]
	if !again {
		v = t.s.Value(key)
		t.read[key] = v
	}
	return v
}

// Put writes a value.
func (t *EffectTx) Put(key, value string) {
	t.written[key] = value
}

// Join implements store.Joiner: tx is an *EffectTx.
func (s *Store) Join(_ context.Context, tx any, do func(store.Tx) error) error {
	t, ok := tx.(*EffectTx)
	if !ok {
		return fmt.Errorf("memory: join: %w: a %T is no transaction of this store", store.ErrRejected, tx)
	}
	return do(joined{t})
}

// joined is a transaction that a caller joins. Its plans commit with the effect.
type joined struct{ *EffectTx }

// Load implements store.Tx, for starts and signals.
func (j joined) Load(_ context.Context, wants []store.Want, _ bool) (*store.Loaded, error) {
	s := j.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.outside(wants)
	for i := range wants {
		j.readOwn(&wants[i], l)
	}
	return l, nil
}

// readOwn reads what the transaction itself has started or sent.
func (j joined) readOwn(w *store.Want, l *store.Loaded) {
	for i := range j.plans {
		p := j.plans[i].Plan
		for _, x := range p.Signals {
			if w.Known == (collation.RowKey{Job: p.Job, GUID: x.GUID}) {
				l.Known[w.Known] = x.State
			}
		}
		if e := p.Entry; begins(p) && e.Key == w.Key {
			l.Holders[e.Key] = &collation.Holder{
				ID: e.Job, Generation: e.Generation, State: journal.JobOpen, Flow: *e.Flow, Input: e.Input,
			}
		}
	}
}

// Commit implements store.Tx. It writes, and takes back: the plans are written with the effect.
func (j joined) Commit(_ context.Context, plans []store.Chained) error {
	s, all := j.s, append(j.plans, plans...)
	s.mu.Lock()
	defer s.mu.Unlock()
	err := atomic(func(u *undo) (err error) {
		for i := 0; i < len(all) && err == nil; i++ {
			err = s.apply(u, &all[i])
		}
		return cmp.Or(err, errTrial)
	})
	if !errors.Is(err, errTrial) {
		return err
	}
	j.plans = all
	return nil
}

// errTrial takes back what was only tried.
var errTrial = errors.New("memory: as a trial")

// Value reads a committed value of a Tx effect, "" if there is none.
func (s *Store) Value(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key]
}

// commit writes the transaction's values: errConflict.
func (t *EffectTx) commit(u *undo) error {
	for key, v := range t.read {
		if t.s.values[key] != v {
			return errConflict
		}
	}
	for key, v := range t.written {
		put(u, t.s.values, key, v)
	}
	for i := range t.plans {
		if err := t.s.apply(u, &t.plans[i]); err != nil {
			return errors.Join(errConflict, err)
		}
	}
	return nil
}

// Body implements store.Bodies. There is no SQL: the handle is an *EffectTx.
func (s *Store) Body(
	ctx context.Context, of collation.RowKey, key journal.Digest, call store.TxCall,
	end func(context.Context, store.Tx, store.TxEnd) error,
) (stood *store.EffectRow, err error) {
	if err := s.before("body"); err != nil {
		return nil, err
	}
	for range maxAttempts {
		if stood := s.outcome(of, key); stood != nil {
			return stood, nil
		}
		if err = s.body(ctx, call, end); !errors.Is(err, errConflict) {
			return nil, err
		}
	}
	return nil, &store.TxError{Err: err}
}

// body runs a body once: errConflict.
func (s *Store) body(
	ctx context.Context, call store.TxCall, end func(context.Context, store.Tx, store.TxEnd) error,
) error {
	t := &EffectTx{s: s, read: map[string]string{}, written: map[string]string{}}
	with, err := call(ctx, t)
	switch {
	case err != nil:
		return &store.TxError{Err: err}
	case ctx.Err() != nil:
		return &store.TxError{Err: context.Cause(ctx)}
	}
	x := ending{committer: &committer{s: s}, before: t.commit}
	if with.Error != nil || with.NotDone { // only the outcome is recorded
		x.before = func(*undo) error { return nil }
	}
	defer x.Close()
	return end(context.WithoutCancel(ctx), x, with)
}

// ending is the end of a body's transaction: the body's writes come before the plans.
type ending struct {
	*committer
	before func(*undo) error
}

// Commit implements store.Tx.
func (x ending) Commit(_ context.Context, plans []store.Chained) error {
	if err := x.commit(plans, x.before); err != nil {
		return err
	}
	return x.s.after("body")
}
