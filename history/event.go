package history

import (
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Kind says what an Event is about.
type Kind string

// The kinds of events.
const (
	KindStarted  Kind = "started"  // the job
	KindSent     Kind = "sent"     // a request, to its topic
	KindDone     Kind = "done"     // an activity, or an element of a list
	KindFailed   Kind = "failed"   // an activity, or an element: for good
	KindAttempt  Kind = "attempt"  // one failed; another follows
	KindWaits    Kind = "waits"    // for a signal, a time, or what a function named
	KindWoke     Kind = "woke"     // what was waited for came
	KindSignal   Kind = "signal"   // one was sent
	KindChild    Kind = "child"    // one was ordered
	KindEffect   Kind = "effect"   // began, or has an outcome
	KindParked   Kind = "parked"   // it waits for a person
	KindOperator Kind = "operator" // what a person did
	KindLate     Kind = "late"     // a message that came too late changed nothing
	KindClosed   Kind = "closed"   // the job
	KindOther    Kind = "other"
)

// Event is one thing that happened in a job.
type Event struct {
	Time collation.Micros // by the database's clock
	Kind Kind
	// Activity and DAD are those of the instance, empty for the job as a whole.
	Activity string
	DAD      collation.DAD
	// Element is the place in the list of an `each`, from 0; -1 for none.
	Element int
	// Text says in a few words what happened, without the values below.
	Text string
	// Attempt is the attempt that it tells of, from 1; 0 for none.
	Attempt int
	Code    int // of an end, otherwise 0
	Input   *Value
	Output  *Value
	Error   *journal.Failure
	// Job is another job that it tells of: a child, a parent, a target.
	Job journal.JobID
	// Due is when it goes on by the clock alone, 0 where it does not.
	Due collation.Micros
	// Waited is how long a request waited for a worker, and Ran how long that one
	// worked on it, both of one attempt; 0: not known. What was waited for otherwise
	// has Waited alone. A run begins by the clock of its worker: one that differs from
	// the database's makes Waited longer, or 0.
	Waited, Ran time.Duration
	// Chain and Seq name the entry that tells it.
	Chain journal.GUID
	Seq   int64
	// Ledger is the activity's, as the entry leaves it; 0: it does not move.
	Ledger journal.Ledger
}

// Value is an input or an output. Exactly one of its fields is set.
type Value struct {
	JSON []byte // canonical
	// Missing says why it is not known.
	Missing string
}
