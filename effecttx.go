package quipu

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/workers"
)

// EffectTx is the transaction in which the body of a Tx effect writes (E3), on the space's database.
// It commits with the effect's result or not at all. It has the methods of pgx.Tx except Commit and
// Rollback, which are Quipu's; StartTx and SignalTx accept it. Use it from one goroutine at a time;
// it ends with its effect.
//
// The settings are those of the connection string and the database, so unqualified tables are
// found by the database's search path. Each call takes one statement, never by the simple
// protocol. Statements that begin or end a transaction, name a savepoint or belong to the session
// (LISTEN, PREPARE, DISCARD, …) are refused with ErrEffectTx. SET, temporary tables, cursors and
// session advisory locks end with the effect. The isolation is READ COMMITTED.
type EffectTx interface {
	Transaction

	// Batch sends many statements in one round trip, under the rules for single ones. Results go
	// to the functions set on them (Exec, Query and QueryRow of pgx.QueuedQuery), which must not
	// use the transaction. The error is that of the first statement or function that failed.
	Batch(ctx context.Context, b *pgx.Batch) error
	// Savepoint runs fn, which goes on in this transaction, in a savepoint. If fn returns an error or
	// panics, its writes are undone and the transaction can go on. Savepoints may be nested.
	Savepoint(ctx context.Context, fn func(ctx context.Context) error) error
}

// ErrEffectTx is wrapped by errors about a misused EffectTx: a statement that a body may not run,
// two goroutines at once, rows left open, a use after its effect.
var ErrEffectTx = postgres.ErrEffectTx

// ErrNoTx says that DoTx was called without a transaction: outside a job, in a context
// without WithTx, or in a test world without quiputest.WithTx.
var ErrNoTx = errors.New("a tx effect has no transaction")

// DoTx runs fn as an effect of class Tx of the handler that ctx belongs to (E3): SQL on the
// user's own tables in the space's database, exactly once. What fn writes, its result and the
// journal entry commit together or not at all. A later run of the handler gets the stored result
// and does not call fn. A handler may use it several times; in a loop each call needs an
// effects.WithKey or its own effects.Args (E2).
//
// An error, a panic, the end of ctx, or a request that this run has lost roll everything back.
// The error is returned and nothing is recorded, so fn runs again with the next run of the
// handler. An error that counts as a result (workers.Fail, workers.Fatal) and effects.NotDone are
// recorded, but what fn wrote is still rolled back.
//
// fn should do only SQL and be short. It runs again at once, in a new transaction, after a
// deadlock or a lost connection. The server ends a transaction that is idle for 60 s, and locks
// are held until the commit. A call outside belongs in an effects.Do beside it. The process's
// database role needs rights on the user's tables.
func DoTx[R any](ctx context.Context, name string, fn func(ctx context.Context, tx EffectTx) (R, error), options ...effects.Option) (R, error) {
	return effects.DoTx(ctx, name, func(ctx context.Context, handle any) (out R, err error) {
		if tx, ok := handle.(EffectTx); ok {
			return fn(ctx, tx)
		}
		outer, ok := ctx.Value(outerTx{}).(Tx)
		if !ok {
			return out, noTx(ctx, name, handle)
		}
		err = postgres.Borrow(ctx, outer, func(ctx context.Context, tx postgres.EffectTx) error {
			out, err = fn(ctx, tx)
			return err
		})
		return out, err
	}, options...)
}

// noTx explains how to give a transaction to a body that has none.
func noTx(ctx context.Context, name string, handle any) error {
	if effect.From(ctx) == nil {
		return fmt.Errorf("%w: %s: it is called outside a job: give it one with quipu.WithTx", ErrNoTx, name)
	}
	return fmt.Errorf("%w: %s: there is no SQL in a test world: give it a quipu.EffectTx of your own with quiputest.WithTx, it has a %T", ErrNoTx, name, handle)
}

// HandleTx registers a handler whose body is one Tx effect, named after its topic (E3).
// Everything else is as for workers.Handle.
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

// WithTx gives a transaction to the DoTx calls of a handler that is called directly (E14). Each
// call writes in a savepoint, so that a test can look at the result and roll it back. Within a
// job WithTx has no effect.
func WithTx(ctx context.Context, tx Tx) context.Context {
	return context.WithValue(ctx, outerTx{}, tx)
}
