package store

import (
	"context"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Requests is what a store does for workers by itself. Every write names turn and
// fence of the request's row; no match is ErrStale (E9, J8).
type Requests interface {
	// Lease takes the request before a run that is not its first delivery: it sets
	// holder and session, raises fence and runs, and the row is due no more, in one
	// commit (E9, W8). ErrStale: no row, turned, or another turn; ErrSession: the
	// session has ended. ErrLeased: another run has it, or an effect that this turn started is
	// unfinished and its call may be under way (E4).
	// ErrExhausted: runs is over MaxRuns. A store only says so; a Worker holds the
	// row then.
	Lease(ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64) (Lease, error)
	// Keep takes the lease of a run that began without one and goes on for long; of
	// one that has it, it changes nothing that counts. ErrStale, or ErrJobClosed.
	Keep(ctx context.Context, l Lease) (Lease, error)
	// HandBack ends the lease of a run that was drained, or that never came about: it
	// is not counted, and the row is due at once (E9). The run is known by its holder.
	HandBack(ctx context.Context, l Lease) error
	// Input reads the input of a request from its row: inputs that are too
	// large for a message (T4).
	Input(ctx context.Context, job journal.JobID, request journal.GUID) ([]byte, error)

	// Effects lists the recorded effects of a request, in the order of their
	// first entry.
	Effects(ctx context.Context, job journal.JobID, request journal.GUID) ([]EffectRow, error)
	// Pauses lists what the durable function of a request waited or waits for, in
	// the order of Seq, those that have not come last (E12). Nobody may change what
	// they brought: a store may keep it.
	Pauses(ctx context.Context, job journal.JobID, request journal.GUID) ([]Pause, error)
}

// Bodies runs the bodies of effects of class tx.
type Bodies interface {
	// Body gives call a handle on a transaction of the store's own database, or of
	// what it has in the place of one, and then has end decide and commit in it, once
	// call has ended: Load locks the request's row now, and Commit commits what call
	// wrote with the plans; with an error, or NotDone, what call wrote is undone
	// before. An effect of the key that has an outcome is returned, without calling.
	// What ends without a Commit is rolled back, without a trace: an error of call,
	// writes that cannot be kept, the end of ctx before call has returned, each a
	// *TxError, an error of end, and a panic. After trouble with the database (J4)
	// call runs again, in a new transaction.
	Body(ctx context.Context, job journal.JobID, key journal.Digest, call TxCall,
		end func(ctx context.Context, tx Tx, with TxEnd) error) (stood *EffectRow, err error)
}

// Worker is what a handler runtime needs: Requests, and effects, which are committed
// with whatever else its process commits.
type Worker interface {
	Requests
	// PutPayload stores an output that is sent by digest (E6), once: ErrRejected,
	// ErrNotFound where its job is not there.
	PutPayload(ctx context.Context, job journal.JobID, digest journal.Digest, body []byte) error
	// StartEffect records effect.started, alone, on the request's chain (E4).
	// An unfinished start by a run that has lost the request is taken over: the row's
	// fence decides (the caller holds the newer fence), and taken is true. A
	// finished one is returned as it is. Class undo registers a compensation and
	// sets the row's Undo: it is no call outside, so an unfinished one is returned
	// as it is, too, and stands in nobody's way. In a job that resumes another (Lease)
	// what an earlier generation has of the effect is taken over, of whatever class; of
	// class pure and tx nothing else is written.
	StartEffect(ctx context.Context, l Lease, e journal.Effect) (row EffectRow, taken bool, err error)
	// FinishEffect records effect.completed or effect.failed (NotDone). Results
	// are write-once: the row that stands is returned. The completion of a start
	// that exists is recorded even when the request is gone, as Late (J8); NotDone
	// of one that another run has taken over to call again is ErrStale. An
	// effect of class pure needs no start; one of class tx is TxEffect's.
	FinishEffect(ctx context.Context, l Lease, e journal.Effect, notDone bool) (EffectRow, error)
	// TxEffect is an effect of class tx (E3): call gets a handle on a transaction
	// of the store's own database, or of what it has in the place of one, and what it writes
	// there commits together with the effect and its entry, or not at all. The
	// row of the request is locked, and turn and fence are compared, after call
	// (J8): ErrStale. What ends without a result is rolled back, without a trace:
	// an error of call, writes that cannot be kept, the end of ctx before call has
	// returned, each a *TxError, and a panic. After trouble with the database (J4)
	// call runs again, in a new transaction. An effect that has an outcome is
	// returned as it is, without calling.
	TxEffect(ctx context.Context, l Lease, e journal.Effect, call TxCall) (EffectRow, error)
}

// TxError says that an effect of class tx was rolled back for a reason of its
// own: Err is that of its body, or what was wrong with it.
type TxError struct{ Err error }

// Error is that of Err.
func (e *TxError) Error() string { return e.Err.Error() }

// Unwrap gives Err.
func (e *TxError) Unwrap() error { return e.Err }

// TxCall is the body of an effect of class tx. tx is the store's handle.
type TxCall func(ctx context.Context, tx any) (TxEnd, error)

// TxEnd is how an effect of class tx ended. With Error, or NotDone, what the
// call wrote is rolled back and the outcome is recorded alone.
type TxEnd struct {
	Result  []byte
	Error   *journal.Failure
	NotDone bool // runs again under the next key (E5)
}

// Pause is one recorded or open wait of a durable function.
type Pause struct {
	journal.PauseRef
	Seq      int64             // of the entry that recorded it; 0: it has not come
	Response *journal.Response // as recorded; nil: it has not come
}

// What a worker reads and names of a request: the types of package collation.
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

// Classes of the errors of effects that an operator said were not done.
const (
	FailureOperator = collation.FailureOperator
	FailureVoided   = collation.FailureVoided
)
