package quipu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/process"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/view"
)

// Errors of calls.
var (
	// ErrNotFound says that there is no such job, flow or dead letter.
	ErrNotFound = store.ErrNotFound
	// ErrUnavailable says that a server is away. Nothing was done; the call may be repeated.
	ErrUnavailable = store.ErrUnavailable
	// ErrUnknown says that the database's answer was lost. The call may have taken effect, and
	// may be repeated.
	ErrUnknown = store.ErrUnknown
	// ErrRefused says that an engine refused the start that this client asked for, and why: another
	// job has the key, the flow is not there, or the input does not fit it (S8). Nothing was begun.
	ErrRefused = engine.ErrRefused
	// ErrStale says that the call came too late: somebody else has decided, or it has ended.
	ErrStale = store.ErrStale
	// ErrRejected says that the database cannot store the given value.
	ErrRejected = store.ErrRejected
	// ErrVersionTaken says that the flow's version is deployed with other content.
	ErrVersionTaken = store.ErrVersionTaken
	// ErrSchema says that the schema of the space does not fit this build.
	ErrSchema = store.ErrSchema
	// ErrInput says that what the caller gave cannot be taken, and the text says what: an input that
	// is no JSON, too large or against the flow's schema; the topic, the key, the payload or an option
	// of a signal; an option of an interrupt; a decision that does not fit its dead letter. Nothing
	// was done.
	ErrInput = engine.ErrInput
	// ErrKey says that the key is missing, longer than MaxKey, no UTF-8, has control characters,
	// or is not the key that identity strict derives (E16).
	ErrKey = engine.ErrKey
)

// ErrClosed says that the Runtime was closed before or during the call. The job goes on.
var ErrClosed = engine.ErrClosed

// ErrRun says that Run was called twice on one Runtime. Open another one.
var ErrRun = process.ErrRun

// ErrConfig is wrapped by errors about a Config.
var ErrConfig = process.ErrConfig

// ErrAnotherDatabase says that the server was promoted, or the database restored to an older
// point, since the process knows the space (S13). It is an ErrUnavailable: nothing is decided,
// started or leased until somebody accepts the database with `quipu recover`, or, for a promotion
// without a loss, has done so beforehand. Then a running process goes on by itself.
var ErrAnotherDatabase = store.ErrAnotherDatabase

// ErrLogin says that the database does not let this login in, or that the login has no right to
// what was asked (S8); the error says which, and what to do. It is an ErrUnavailable: nothing was
// done. But calling again does not help until somebody has changed that.
var ErrLogin = store.ErrLogin

// ErrPreflight is wrapped by the error of Open about a setting of Postgres or NATS that would
// break the promise (S7), and with ErrUnavailable by those of writing calls while a setting of Postgres
// is not any more as it was then. The error names each check and what to do; Config.Accept accepts some
// of them by their names.
var ErrPreflight = store.ErrPreflight

// ErrNotReady is wrapped by the errors of Check about a process that takes no work now.
var ErrNotReady = process.ErrNotReady

// ErrResume says that the job cannot be resumed as asked. Nothing was begun.
var ErrResume = engine.ErrResume

// ErrFork says that no job can be forked as asked. Nothing was begun.
var ErrFork = engine.ErrFork

// ErrRepair says that a job cannot be repaired: the journal itself breaks a law, a row cannot be
// rebuilt from it, or the job is open. Nothing was changed.
var ErrRepair = errors.New("refused to repair")

// ErrEffectTx is wrapped by errors about a misused EffectTx: a statement that a body may not run,
// two goroutines at once, rows left open, a use after its effect.
var ErrEffectTx = postgres.ErrEffectTx

// ErrNoTx says that DoTx was called without a transaction: outside a job, in a context
// without WithTx, or in a test world without quiputest.WithTx.
var ErrNoTx = errors.New("a tx effect has no transaction")

// ErrTombstone says that the job has expired and its journal was removed.
var ErrTombstone = inspect.ErrTombstone

// ConflictError says that the key of a start belongs to a job of another flow or with another
// input (1.11). Nothing was begun.
type ConflictError struct {
	Job           Job    // the job that has the key
	Flow, Version string // what that job was started from
	// SameFlow and SameInput say what agrees; the flow of a Call is its topic.
	SameFlow, SameInput bool
}

// Error says what differs.
func (e *ConflictError) Error() string {
	differs := "with another input"
	if !e.SameFlow {
		differs = fmt.Sprintf("of flow %s version %s", e.Flow, e.Version)
	}
	return fmt.Sprintf("the key %.80q has a job %s: take another key", e.Job.Key, differs)
}

// JobError says that a job ended without completing: its state, and the code and cause of its
// error.
type JobError struct {
	Job   Job
	State journal.JobState
	Code  int
	Cause *journal.Failure
}

// Error names the job and its error.
func (e *JobError) Error() string {
	message := "no message"
	if e.Cause != nil {
		message = e.Cause.Message
	}
	return fmt.Sprintf("job %q %s with code %d: %s", e.Job.Key, e.State, e.Code, message)
}

// ParkedError says that a job waits for a person: it has these open dead letters, and perhaps
// nothing else goes on in it. Operator.Decide answers them.
type ParkedError struct {
	Job         Job
	DeadLetters []view.DeadLetter // newest first
}

// Error names the dead letters and says what to do.
func (e *ParkedError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "job %q waits for a person", e.Job.Key)
	for i, l := range e.DeadLetters {
		if i == maxLettersNamed {
			fmt.Fprintf(&text, "; and %d more", len(e.DeadLetters)-i)
			break
		}
		fmt.Fprintf(&text, "; dead letter %d of %s (%s): %s", l.ID, l.Activity, l.Reason, l.Message)
	}
	fmt.Fprintf(&text, "; `quipu why %s` says what can be done", e.Job.Key)
	return text.String()
}

// maxLettersNamed bounds the dead letters that the text of a ParkedError names.
const maxLettersNamed = 3
