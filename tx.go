package quipu

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/engine"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/observer"
)

// Tx is a transaction of the caller's own on the database of the space: a pgx.Tx,
// of a connection, of a pool, or a savepoint of either (E17).
type Tx = postgres.Tx

// Transaction is what StartTx and SignalTx act in: a Tx, or the EffectTx that the
// body of a DoTx was given.
type Transaction = postgres.Transaction

// StartTx is Start inside the caller's own transaction: the job begins when that
// commits, and never was if it does not (E17). Nothing needs to be published: the
// commit announces the job to the engines, which pick it up at once; one that does not
// hear that, within about a second.
//
// In the body of a DoTx it begins with the effect, or not at all, and a run of the
// handler that finds the effect done begins nothing: exactly one job, without a
// key that has to be remembered.
//
// A key that another transaction is just starting is waited for. After an error
// the transaction can go on as if the call had not been, and nothing was retried:
// with ErrUnavailable the caller retries the whole transaction (a DoTx does so
// itself where it returns the error). The caller's database role, or that of the
// worker, needs the rights of the engine's role (4.5).
func (rt *Runtime) StartTx(ctx context.Context, tx Transaction, flowName, key string, input any, opts ...StartOption) (Job, error) {
	r := StartRequest{Flow: flowName, Key: key, Input: input}
	for _, o := range opts {
		o.toStart(&r)
	}
	for attempt := 0; ; attempt++ {
		start, err := rt.prepare(ctx, r)
		if err != nil {
			return Job{}, err
		}
		trace, end := rt.cfg.Observer.Root(ctx, observer.Subject{Space: rt.cfg.Space, Key: start.Key, Flow: start.Flow.Name})
		start.Trace = trace
		begun, err := rt.committer.StartTx(ctx, tx, start)
		end(errors.Join(err, begun.Err))
		switch {
		case errors.Is(err, engine.ErrFlowMoved) && attempt < maxFlowMoves:
			continue
		case err != nil:
			return Job{}, fmt.Errorf("start job %.80q in a transaction: %w", start.Key, err)
		}
		return started(start.Key, begun)
	}
}

// SignalTx is Signal inside the caller's own transaction: the signal is sent when
// that commits (E17), and reaches a hook as soon as a job of StartTx begins. So its state is
// SignalKept, or of a Duplicate what became of the first. Errors are as of
// StartTx, or ErrSignal.
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
