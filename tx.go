package quipu

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quipu-journal/quipu/internal/engine"
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

// StartTx is Start inside the caller's own transaction: the job begins if and when that commits
// (E17). Nothing has to be published: the commit announces the job to the engines, which pick it
// up at once. If the announcement is lost they find it within about a second.
//
// In the body of a DoTx the job begins with the effect or not at all. A later run of the handler
// finds the effect done and begins nothing, so there is exactly one job and no key to remember.
//
// StartTx waits for another transaction that is starting the same key. After an error the
// transaction stays usable, as if the call had not been made. StartTx does not retry: after
// ErrUnavailable the caller repeats the whole transaction (a DoTx does so itself if its body
// returns the error). A transaction that is closed, nil, or aborted by an earlier error gives
// ErrRejected.
//
// With a database login of the role client an engine begins the job after the commit, and the Job
// that is returned has no ID, but for one that has the key already. The engine refuses it if the key
// has another job by then, or the flow or its schema has changed. Nobody is there to be told, so
// keep the Job: Wait, Job and the like say ErrRefused with the reason, for 30 days. The engine logs
// it and counts it (quipu_starts_asked_total). A worker's login has no right to StartTx (S8).
func (rt *Runtime) StartTx(ctx context.Context, tx Transaction, flowName, key string, input any, opts ...StartOption) (Job, error) {
	r := StartRequest{Flow: flowName, Key: key, Input: input}
	for _, o := range opts {
		o.toStart(&r)
	}
	begin := rt.committer.StartTx
	if !rt.proc.Decides() {
		begin = rt.committer.AskTx // a login without the keys makes no inception (S8)
	}
	for attempt := 0; ; attempt++ {
		start, err := rt.prepare(ctx, r)
		if err != nil {
			return Job{}, err
		}
		start.Trace = rt.cfg.Observer.Trace(ctx)
		begun, err := begin(ctx, tx, start)
		switch {
		case errors.Is(err, engine.ErrFlowMoved) && attempt < maxFlowMoves:
			continue
		case err != nil:
			return Job{}, fmt.Errorf("start job %.80q in a transaction: %w", start.Key, err)
		}
		return started(start.Key, begun)
	}
}

// SignalTx is Signal inside the caller's own transaction: the signal is sent when that commits
// (E17) and reaches a hook as soon as a job of StartTx begins. So its state is SignalKept, or for
// a Duplicate what became of the first. Errors are those of StartTx, or ErrSignal.
func (rt *Runtime) SignalTx(ctx context.Context, tx Transaction, topic, key string, payload any, opts ...SignalOption) (SignalResult, error) {
	s, err := rt.signal(ctx, false, topic, key, payload, opts)
	if err != nil {
		return SignalResult{}, err
	}
	done, err := rt.committer.SignalTx(ctx, tx, *s)
	if err != nil {
		return SignalResult{}, fmt.Errorf("signal %s in a transaction: %w", topic, err)
	}
	return SignalResult{State: SignalState(done.State), Duplicate: done.Duplicate}, nil
}
