package store

import (
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Errors that a caller decides on.
var (
	// ErrLost says that a test-and-set found another value than the decision saw. Roll back, load
	// and decide again (C3).
	ErrLost = errors.New("lost a test-and-set: decide again")
	// ErrBusy says that another transaction held a lock longer than a batch waits (W3). Nothing
	// was committed.
	ErrBusy = errors.New("another transaction holds it")
	// ErrUnavailable says that the database cannot be used just now. Nothing was committed; retry
	// with backoff (C10).
	ErrUnavailable = errors.New("the database is unavailable: retry")
	// ErrLogin comes with ErrUnavailable: the server is there and does not let this login in, it has
	// no such database, or the login has no right to what was asked (S8). Waiting does not help, until
	// somebody changes that.
	ErrLogin = errors.New("the database refuses the login")
	// ErrAnotherDatabase comes with ErrUnavailable: the server was promoted, or the database was
	// restored to an older point (S13). Nothing is decided until somebody accepts it (`quipu
	// recover`); then the process goes on by itself.
	ErrAnotherDatabase = errors.New("the database is another one")
	// ErrUnknown says that the outcome of a commit could not be found out (J4).
	ErrUnknown = errors.New("the outcome of a commit is unknown")
	// ErrRejected is collation.ErrRejected.
	ErrRejected = collation.ErrRejected
	// ErrStale is collation.ErrStale.
	ErrStale = collation.ErrStale
	// ErrLeased is collation.ErrLeased.
	ErrLeased = collation.ErrLeased
	// ErrBehind is collation.ErrBehind.
	ErrBehind = collation.ErrBehind
	// ErrJobClosed says that the job of the request has ended (E9).
	ErrJobClosed = errors.New("the job is closed")
	// ErrExhausted says that a request ran more than MaxRuns times without an answer. Its row is
	// due, and an engine holds it, with a dead letter (E9).
	ErrExhausted = errors.New("the request was run too often without an answer")
	// ErrNotFound says that the thing asked for does not exist.
	ErrNotFound = errors.New("not found")
	// ErrVersionTaken says that a flow's version is deployed with other content.
	ErrVersionTaken = errors.New("the flow version is deployed with other content")
	// ErrSchema says that this build does not fit the database's schema.
	ErrSchema = errors.New("schema version mismatch")
	// ErrPartition says that the history has no partition for new jobs (W10). Nothing was
	// committed; a retry succeeds once there is one.
	ErrPartition = errors.New("no partition for new jobs: run `quipu migrate`")
	// ErrOwner says that this login may not make or drop partitions: it needs the rights of the
	// tables' owner (W10, W11).
	ErrOwner = errors.New("this login may not act as the owner of the tables")
)

// AlreadyStartedError says that the key of a start has a job already (1.11): Job.
type AlreadyStartedError struct {
	Flow      journal.FlowRef // of the job
	Job       journal.JobID
	Key       string
	SameFlow  bool
	SameInput bool
}

// Error names the key and what differs.
func (e *AlreadyStartedError) Error() string {
	return fmt.Sprintf("job %q was already started (same flow: %t, same input: %t)", e.Key, e.SameFlow, e.SameInput)
}

// LostError is an ErrLost that says to what the test-and-set lost.
type LostError struct {
	Keys  []string        // of inceptions: taken meanwhile
	Flows []string        // of inceptions: another version became active
	Jobs  []journal.JobID // of payloads: they do not exist
	Hot   []journal.JobID // of guards: changed, or locked by another transaction
	// Session says that the session of a taken row has ended (W8).
	Session bool
	Err     error
}

// Error lists what was lost.
func (e *LostError) Error() string {
	return fmt.Sprintf("%v: keys %.200q, flows %.200q, %d jobs, %d hot states, session %t: %v", ErrLost, e.Keys, e.Flows, len(e.Jobs), len(e.Hot), e.Session, e.Err)
}

// Is makes it an ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// Unavailable returns an ErrUnavailable with its own text, for a fault that is retried like a
// missing database but has another name.
func Unavailable(why string) error { return &said{why, ErrUnavailable} }

// Login returns an ErrLogin, which is an ErrUnavailable, with its own text.
func Login(why string) error { return &said{why, errLogin} }

var errLogin = errors.Join(ErrLogin, ErrUnavailable)

// Rejected returns an ErrRejected with its own text.
func Rejected(why string) error { return &said{why, ErrRejected} }

// RejectedFor returns an ErrRejected with the text of its cause, which it wraps.
func RejectedFor(cause error) error { return &said{cause.Error(), errors.Join(ErrRejected, cause)} }

type said struct {
	why  string
	kind error
}

// Error returns the text.
func (s *said) Error() string { return s.why }

// Unwrap returns the kind.
func (s *said) Unwrap() error { return s.kind }
