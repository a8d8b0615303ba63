package quipu

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// Tx is the caller's own transaction on the space's database: a pgx.Tx of a connection or a pool,
// or a savepoint of one (E17).
type Tx = pgx.Tx

// Transaction is what StartTx and SignalTx write in: a Tx, or the EffectTx of a DoTx. Its methods are
// those that both have.
type Transaction interface {
	// Exec runs one statement.
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	// Query runs one statement. Close its rows, or read them to the end, before the next.
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	// QueryRow is Query for one row. Scan returns its errors, pgx.ErrNoRows if there is none.
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	// CopyFrom inserts many rows at once. The source must not use the transaction.
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
}

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
func DoTx[R any](
	ctx context.Context, name string, fn func(ctx context.Context, tx EffectTx) (R, error), options ...effects.Option,
) (R, error) {
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
func HandleTx[In, Out any](
	reg *workers.Registry, topic string, fn func(ctx context.Context, tx EffectTx, in In) (Out, error),
	options ...workers.Option,
) {
	if fn == nil {
		workers.Handle[In, Out](reg, topic, nil, options...)
		return
	}
	workers.Handle(reg, topic, func(ctx context.Context, in In) (Out, error) {
		return DoTx(ctx, topic, func(ctx context.Context, tx EffectTx) (Out, error) { return fn(ctx, tx, in) })
	}, options...)
}

// Logger returns the log of the handler run that ctx belongs to, with its job, activity and
// attempt.
func Logger(ctx context.Context) *slog.Logger { return work.Logger(ctx) }

type outerTx struct{}

// WithTx gives a transaction to the DoTx calls of a handler that is called directly (E14). Each
// call writes in a savepoint, so that a test can look at the result and roll it back. Within a
// job WithTx has no effect.
func WithTx(ctx context.Context, tx Tx) context.Context {
	return context.WithValue(ctx, outerTx{}, tx)
}

// ClassUndo is the class of a compensation (3.5), which no effect of a handler has.
const ClassUndo = collation.ClassUndo

// Evidence is what the journal of a job proves about an effect, read from one snapshot.
type Evidence struct {
	Job    Job
	State  journal.JobState
	Head   journal.Head // of the main chain
	Closed time.Time    // zero while it is open
	// Effects are the effects asked for, in the order of their first entries. An empty list means
	// that the journal has none.
	Effects []view.Effect
	// Final says that no further effect of the job can begin: the job is closed and its requests,
	// without which no effect begins (J8), are gone. It is never set for a job that resumes
	// another. An empty list of Effects proves that the effect did not happen only if Final is
	// set and Violation is empty.
	Final bool
	// Chains counts the job's effect chains, Entries the entries that were read.
	Chains, Entries int
	// Violation is the first law that the job's journal breaks, as journal-verify finds it; empty
	// if the journal keeps them all.
	Violation string
}

// Effect finds an effect by its key (effects.Key) among all jobs of the space: ErrNotFound. A
// compensation that ran in a job of its own is recorded there and in the job that registered it,
// under one key; Effect returns the one that ran.
func (rt *Runtime) Effect(ctx context.Context, key journal.Digest) (*view.Effect, error) {
	found, err := rt.store.FindEffect(ctx, key)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b store.JobEffect) int { return cmp.Compare(unknown(&a), unknown(&b)) })
	for i := range found {
		ev, err := rt.Evidence(ctx, Job{ID: found[i].Job}, key.String())
		if err != nil {
			return nil, err
		}
		if len(ev.Effects) > 0 {
			return &ev.Effects[0], nil
		}
	}
	return nil, fmt.Errorf("effect %s: %w: no job of the space has it", key, ErrNotFound)
}

// unknown sorts effects without a recorded outcome last: 1 for those, 0 for the others.
func unknown(f *store.JobEffect) int {
	if f.State == store.EffectStarted {
		return 1
	}
	return 0
}

// Evidence reads and verifies the journal of a job and reports what it holds about an effect.
// effect is a key (64 hexadecimal digits) or a name, such as charge, or charge[order-1] with its
// explicit key; a name stands for all effects that have it. An effect that was recorded as not
// done has one key for each time. Errors: ErrNotFound, ErrTombstone.
func (rt *Runtime) Evidence(ctx context.Context, job Job, effect string) (*Evidence, error) {
	job, err := rt.known(ctx, job)
	if err != nil {
		return nil, err
	}
	found, err := inspect.Effects(ctx, rt.store, job.ID, effect, rt.cfg.Build)
	if err != nil {
		return nil, fmt.Errorf("read the journal of job %.80q: %w", job.name(), err)
	}
	return evidence(job.ID, found), nil
}

func evidence(id journal.JobID, found *inspect.Evidence) *Evidence {
	job := Job{ID: id, Key: found.Key}
	out := &Evidence{
		Job: job, State: found.State, Head: found.Head, Final: found.Final, Chains: found.Chains,
		Entries: found.Entries, Violation: found.Violation,
		Effects: found.Effects,
	}
	if found.Closed != 0 {
		out.Closed = time.UnixMicro(found.Closed)
	}
	return out
}
