package store

import (
	"context"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Requests has what a store does for workers outside the committer. Every write names turn and
// fence of the request's row; if no row matches it is ErrStale (E9, J8).
type Requests interface {
	// Lease takes the request before a run that is not its first delivery. In one commit it sets
	// holder and session, raises fence and runs, and makes the row not due (E9, W8). ErrStale:
	// the row is gone, was answered or has another turn. ErrSession: the session has ended.
	// ErrLeased: another run has it, or an unfinished effect of this turn may still be running
	// (E4). ErrExhausted: the request ran MaxRuns times; runs is then one more, and the row is due, so that
	// an engine holds it (S8).
	Lease(ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64) (Lease,
		error)
	// Keep takes the lease of a long run that began without one. For a run that has it, it
	// changes nothing that counts. ErrStale, or ErrJobClosed.
	Keep(ctx context.Context, l Lease) (Lease, error)
	// HandBack ends the lease of a run that was drained or never began: the run is not counted, it
	// begins no effect any more, and the row is due at once (E9). The holder identifies the run.
	HandBack(ctx context.Context, l Lease) error
	// Input reads the input of a request from its row, where it is too large for a message (T4).
	Input(ctx context.Context, job journal.JobID, request journal.GUID) ([]byte, error)

	// Effects lists the recorded effects of a request, in the order of their first entries.
	Effects(ctx context.Context, job journal.JobID, request journal.GUID) ([]EffectRow, error)
	// Pauses lists what a durable function has waited for, by Seq, and then what it still waits
	// for (E12). Nobody may change the responses: a store may keep them.
	Pauses(ctx context.Context, job journal.JobID, request journal.GUID) ([]Pause, error)
}

// Bodies runs the bodies of effects of class tx.
type Bodies interface {
	// Body gives call a handle on a transaction of the store's database, or on a stand-in. Then
	// end decides and commits in that transaction: Load locks the request's row only now, and
	// Commit commits what call wrote together with the plans. After an error of call, or NotDone,
	// call's writes are undone first. If the effect of the key has an outcome, Body returns it
	// and does not call. Without a Commit everything is rolled back without a trace: after an
	// error of end, a panic, or, each as a *TxError, an error of call, writes that cannot be
	// kept, or the end of ctx before call returned. After trouble with the database (J4) call
	// runs again in a new transaction.
	Body(ctx context.Context, of collation.RowKey, key journal.Digest, call TxCall,
		end func(ctx context.Context, tx Tx, with TxEnd) error) (stood *EffectRow, err error)
}

// Worker has what a handler runtime needs: Requests, and effects, which go through the process's
// committer.
type Worker interface {
	Requests
	// PutPayload stores an output that is sent by digest (E6), once: ErrRejected; ErrNotFound if
	// its job does not exist.
	PutPayload(ctx context.Context, job journal.JobID, digest journal.Digest, body []byte) error
	// StartEffect commits effect.started before the call, on the request's chain (E4). If a run that has
	// lost the request left the effect unfinished, the caller takes it over: its fence is higher,
	// and taken is true. A finished effect is returned as it is. Class undo registers a
	// compensation and sets the row's Undo; it is no call outside, so an unfinished one is
	// returned as it is, too. In a job that resumes another (Lease) the record of an earlier
	// generation is copied, whatever its class; of class pure and tx nothing else is written.
	StartEffect(ctx context.Context, l Lease, e journal.Effect) (row EffectRow, taken bool, err error)
	// FinishEffect records effect.completed or effect.failed (NotDone). Results are written once:
	// the row that exists is returned. The completion of a started effect is recorded even if the
	// request is gone, as Late (J8). NotDone of an effect that another run has taken over to call
	// again is ErrStale. Class pure needs no start; class tx goes by TxEffect.
	FinishEffect(ctx context.Context, l Lease, e journal.Effect, notDone bool) (EffectRow, error)
	// SendOutcome has the completion of an effect recorded, as FinishEffect does, and does not wait:
	// only what calls it is bound by ctx. ended is called once, with what FinishEffect would
	// return, and must return soon. What the run sends later comes to the chain later, unless
	// something holds it up (Lease.After).
	SendOutcome(ctx context.Context, l Lease, e journal.Effect, ended func(EffectRow, error))
	// TxEffect runs an effect of class tx (E3). call gets a handle on a transaction of the
	// store's database, or on a stand-in; its writes commit together with the effect and its
	// entry, or not at all. Turn and fence are compared under the lock of the request's row after
	// call (J8): ErrStale. Without a result everything is rolled back without a trace: after a
	// panic, or, each as a *TxError, an error of call, writes that cannot be kept, or the end of
	// ctx before call returned. After trouble with the database (J4) call runs again in a new
	// transaction. An effect that has an outcome is returned without a call.
	TxEffect(ctx context.Context, l Lease, e journal.Effect, call TxCall) (EffectRow, error)
}

// Completion is the outcome of an effect that is to be recorded together with the response of its run, in
// one transaction (J8). Told is called once, with what FinishEffect would return; it must return soon.
// After an error neither is known to be recorded, and the run records first one, then the other.
type Completion struct {
	Lease  Lease
	Effect journal.Effect
	Told   func(EffectRow, error)
}

// TxError says that an effect of class tx was rolled back for its own fault: Err is its body's
// error, or what was wrong with the body.
type TxError struct{ Err error }

// Error returns the text of Err.
func (e *TxError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *TxError) Unwrap() error { return e.Err }

// TxCall is the body of an effect of class tx. tx is the store's handle.
type TxCall func(ctx context.Context, tx any) (TxEnd, error)

// TxEnd is how an effect of class tx ended. With Error or NotDone the call's writes are rolled
// back and only the outcome is recorded.
type TxEnd struct {
	Result  []byte
	Error   *journal.Failure
	NotDone bool // it runs again under the next key (E5)
}

// Pause is one recorded or open wait of a durable function.
type Pause struct {
	journal.PauseRef
	Seq      int64             // of the entry that recorded it; 0 while it is open
	Response *journal.Response // as recorded; nil while it is open
}

// Types of package collation that a worker reads or names.
type (
	// Lease is a worker's hold on one turn of a request.
	Lease = collation.Lease
	// EffectState is how far an effect came.
	EffectState = collation.EffectState
	// EffectRow is the stored state of one effect key.
	EffectRow = collation.EffectRow
)

// The states of an effect.
const (
	EffectStarted   = collation.EffectStarted
	EffectCompleted = collation.EffectCompleted
	EffectNotDone   = collation.EffectNotDone
)

// Classes of effects: those of package collation.
const (
	ClassPure       = collation.ClassPure
	ClassTx         = collation.ClassTx
	ClassIdempotent = collation.ClassIdempotent
	ClassGuarded    = collation.ClassGuarded
	ClassUndo       = collation.ClassUndo
)

// Classes of the errors of effects that an operator declared not done.
const (
	FailureOperator = collation.FailureOperator
	FailureVoided   = collation.FailureVoided
)
