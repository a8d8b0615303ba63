package store

import (
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Errors on which a caller decides.
var (
	// ErrLost says that a test-and-set met another value than the decision saw:
	// roll back, load, decide again (C3).
	ErrLost = errors.New("lost a test-and-set: decide again")
	// ErrBusy says that another transaction held something for longer than a batch
	// waits for it (W3); nothing was committed.
	ErrBusy = errors.New("another transaction holds it")
	// ErrUnavailable says that the database could not be used just now; nothing
	// was committed; retry with backoff (C10).
	ErrUnavailable = errors.New("the database is unavailable: retry")
	// ErrUnknown says that the outcome of a commit could not be found out (J4).
	ErrUnknown = errors.New("the outcome of a commit is unknown")
	// ErrRejected is that of package collation.
	ErrRejected = collation.ErrRejected
	// ErrStale is that of package collation.
	ErrStale = collation.ErrStale
	// ErrLeased is that of package collation.
	ErrLeased = collation.ErrLeased
	// ErrJobClosed says that the job of the request has ended (E9).
	ErrJobClosed = errors.New("the job is closed")
	// ErrExhausted says that a request was run more than MaxRuns times without
	// an answer; its row is held now, with a dead letter (E9).
	ErrExhausted = errors.New("the request was run too often without an answer")
	// ErrNotFound is wrapped by reads of what does not exist.
	ErrNotFound = errors.New("not found")
	// ErrVersionTaken says that a flow's version is deployed with other content.
	ErrVersionTaken = errors.New("the flow version is deployed with other content")
	// ErrSchema says that the database's schema is not the one of this build.
	ErrSchema = errors.New("schema version mismatch")
	// ErrPartition says that the history has no partition for new jobs (W10). Nothing
	// was committed; what is tried again succeeds once there is one.
	ErrPartition = errors.New("no partition for new jobs: run `quipu migrate`")
	// ErrOwner says that making or dropping partitions needs the rights of the tables'
	// owner (W10, W11).
	ErrOwner = errors.New("this login may not act as the owner of the tables")
)

// AlreadyStartedError is returned when the key of a start exists (1.11). Job
// is the job that has the key.
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

// LostError is an ErrLost that names what it was lost to.
type LostError struct {
	Keys  []string        // of inceptions: they are taken by now
	Flows []string        // of inceptions: another version is the active one by now
	Jobs  []journal.JobID // of payloads: they are not there
	Hot   []journal.JobID // of guards: they are not as they were, or somebody holds them
	// Session is of rows that are taken: it has ended (W8).
	Session bool
	Err     error
}

// Error says what was lost.
func (e *LostError) Error() string {
	return fmt.Sprintf("%v: keys %.200q, flows %.200q, %d jobs, %d hot states, session %t: %v", ErrLost, e.Keys, e.Flows, len(e.Jobs), len(e.Hot), e.Session, e.Err)
}

// Is makes it an ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap gives its cause.
func (e *LostError) Unwrap() error { return e.Err }

// Unavailable is an ErrUnavailable in other words: for what is retried like a database
// that is away, although that would not be what to tell somebody.
func Unavailable(why string) error { return &said{why, ErrUnavailable} }

// Rejected is an ErrRejected in other words.
func Rejected(why string) error { return &said{why, ErrRejected} }

type said struct {
	why  string
	kind error
}

// Error is why.
func (s *said) Error() string { return s.why }

// Unwrap gives the kind.
func (s *said) Unwrap() error { return s.kind }
