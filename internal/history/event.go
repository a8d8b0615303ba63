package history

import (
	"time"

	"github.com/quipu-journal/quipu/journal"
)

// Kind says what an Event is about.
type Kind string

// The kinds of events.
const (
	KindStarted  Kind = "started"  // the job
	KindSent     Kind = "sent"     // a request was sent to its topic
	KindDone     Kind = "done"     // an activity, or an element of a list, ended
	KindFailed   Kind = "failed"   // an activity, or an element, failed for good
	KindAttempt  Kind = "attempt"  // an attempt failed; another follows
	KindWaits    Kind = "waits"    // it waits for a signal, a time, or a function's pauses
	KindWoke     Kind = "woke"     // a wait ended
	KindSignal   Kind = "signal"   // a signal was sent
	KindChild    Kind = "child"    // a child was ordered
	KindEffect   Kind = "effect"   // an effect began, or has an outcome
	KindParked   Kind = "parked"   // it waits for a person
	KindOperator Kind = "operator" // what a person did
	KindLate     Kind = "late"     // a message was too late and changed nothing
	KindClosed   Kind = "closed"   // the job closed
	KindOther    Kind = "other"
)

// Event is one thing that happened in a job.
type Event struct {
	Time time.Time // by the database's clock
	Kind Kind
	// Activity and Address name the instance; empty for the job as a whole.
	Activity, Address string
	// Pass is which pass of a loop or of a repeating hook it is, from 1.
	Pass int
	// Element is the place in the list of an `each`, from 0; -1 for none.
	Element int
	// Text says in a few words what happened, without the values below.
	Text string
	// Attempt is the attempt that the event is about, from 1; 0 for none.
	Attempt int
	Code    int // of an end; 0 otherwise
	Input   *Value
	Output  *Value
	Error   *journal.Failure
	// Job is another job that the event is about: a child, a parent, a target.
	Job journal.JobID
	// Due is when it goes on without any event, zero if it does not.
	Due time.Time
	// Waited is how long one attempt of a request waited for a worker, and Ran how long
	// the worker ran; 0: not known. Other waits only have Waited. The start of a run is
	// by the worker's clock: if that differs from the database's, Waited is too long, or
	// 0.
	Waited, Ran time.Duration
	// Chain and Seq name the entry of the event.
	Chain journal.GUID
	Seq   int64
	// Ledger is the activity's ledger after the entry; 0 if it does not change.
	Ledger journal.Ledger
}

// Value is an input or an output. Exactly one of its fields is set.
type Value struct {
	JSON []byte // canonical
	// Missing says why the value is not known.
	Missing string
}
