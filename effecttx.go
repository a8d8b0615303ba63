package quipu

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/workers"
)

// EffectTx is what the body of a Tx effect writes with: Exec, Query, QueryRow and
// CopyFrom of pgx, Batch and Savepoint, on one transaction of the space's database;
// StartTx and SignalTx take it, too. It cannot end its transaction, and ends with
// its effect.
type EffectTx = postgres.EffectTx

// ErrEffectTx is wrapped by errors about an EffectTx that is used as it must not
// be: a statement that is not the body's, two goroutines, rows left open, a use
// after its effect.
var ErrEffectTx = postgres.ErrEffectTx

// ErrNoTx says that DoTx was called without a transaction: outside a job, in a context
// without WithTx, or in a test world without quiputest.WithTx.
var ErrNoTx = errors.New("a tx effect has no transaction")

// DoTx runs fn as an effect of class Tx of the handler that ctx belongs to (E3):
// SQL on tables of the user's in the database of the space, exactly once. What fn
// writes, its result and the journal's entry commit together or not at all; a
// later run of the handler gets the stored result and fn is not called. It can be
// used several times in one handler; in a loop each call needs an
// effects.WithKey, or its own effects.Args (E2).
//
// An error, a panic, the end of ctx and a request that is not this run's any more
// roll everything back; the error is returned and nothing is recorded, so that fn
// runs again when the handler does. An error that is a result (workers.Fail,
// workers.Fatal) is recorded, and so is effects.NotDone; what fn wrote is rolled
// back all the same.
//
// fn should do SQL only and be short: it runs again at once, in a new
// transaction, after a deadlock or a lost connection, a transaction that is idle
// for 60 s is ended by the server, and the locks that it takes are held until the
// commit. A call outside belongs into an effects.Do beside it. The process's
// database role needs the rights on the user's tables.
func DoTx[R any](ctx context.Context, name string, fn func(ctx context.Context, tx EffectTx) (R, error), options ...effects.Option) (R, error) {
	return effects.DoTx(ctx, name, func(ctx context.Context, handle any) (out R, err error) {
		if tx, ok := handle.(EffectTx); ok {
			return fn(ctx, tx)
		}
		outer, ok := ctx.Value(outerTx{}).(Tx)
		if !ok {
			return out, noTx(ctx, name, handle)
		}
		err = postgres.Borrow(ctx, outer, func(ctx context.Context, tx EffectTx) error {
			out, err = fn(ctx, tx)
			return err
		})
		return out, err
	}, options...)
}

// noTx says what a body of a Tx effect needs that has no transaction.
func noTx(ctx context.Context, name string, handle any) error {
	if effects.From(ctx) == nil {
		return fmt.Errorf("%w: %s: it is called outside a job: give it one with quipu.WithTx", ErrNoTx, name)
	}
	return fmt.Errorf("%w: %s: there is no SQL in a test world: give it a quipu.EffectTx of your own with quiputest.WithTx, it has a %T", ErrNoTx, name, handle)
}

// HandleTx registers a handler whose body is one Tx effect, named by its topic
// (E3); everything else is as for workers.Handle.
func HandleTx[In, Out any](reg *workers.Registry, topic string, fn func(ctx context.Context, tx EffectTx, in In) (Out, error), options ...workers.Option) {
	if fn == nil {
		workers.Handle[In, Out](reg, topic, nil, options...)
		return
	}
	workers.Handle(reg, topic, func(ctx context.Context, in In) (Out, error) {
		return DoTx(ctx, topic, func(ctx context.Context, tx EffectTx) (Out, error) { return fn(ctx, tx, in) })
	}, options...)
}

type outerTx struct{}

// WithTx gives the DoTx calls of a handler that is called directly (E14) a
// transaction to write in, each in a savepoint: for a test, which then looks at
// it and rolls it back. Within a job it means nothing.
func WithTx(ctx context.Context, tx Tx) context.Context {
	return context.WithValue(ctx, outerTx{}, tx)
}
