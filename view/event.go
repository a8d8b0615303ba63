package view

import (
	"encoding/json"
	"strconv"
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
	Time time.Time `json:"time"` // by the database's clock
	Kind Kind      `json:"kind"`
	// Activity and Address name the instance; empty for the job as a whole.
	Activity string `json:"activity,omitempty"`
	Address  string `json:"address,omitempty"`
	Pass     int    `json:"pass,omitempty"`    // of a loop or of a repeating hook, from 1
	Element  *int   `json:"element,omitempty"` // its place in the list, from 0; nil: of no list
	// Text says in a few words what happened, without the values below.
	Text    string   `json:"text"`
	Attempt int      `json:"attempt,omitempty"` // that it is about, from 1
	Code    int      `json:"code,omitempty"`    // of an end
	Input   *Value   `json:"input,omitempty"`
	Output  *Value   `json:"output,omitempty"`
	Error   *Failure `json:"error,omitempty"`
	// Job is another job that it is about: a child, a parent, a target.
	Job journal.JobID `json:"job,omitzero"`
	// Child is what an await orders: the Job may not have begun.
	Child *Order `json:"child,omitempty"`
	// Due is when it goes on without any event.
	Due time.Time `json:"due,omitzero"`
	// Waited is how long one attempt of a request waited for a worker, and Ran how long the worker ran;
	// 0: not known. Other waits only have Waited. The start of a run is by the worker's clock: if that
	// differs from the database's, Waited is too long, or 0.
	Waited Duration `json:"waited_us,omitzero"`
	Ran    Duration `json:"ran_us,omitzero"`
	// Chain and Entry name the entry that tells it; Chain is zero for the main chain.
	Chain journal.GUID `json:"chain,omitzero"`
	Entry int64        `json:"entry"`
	// Ledger is the activity's ledger after the entry; 0: it does not change.
	Ledger journal.Ledger `json:"ledger,omitzero"`
}

// Value is an input or an output. Exactly one of its fields is set.
type Value struct {
	JSON json.RawMessage `json:"value,omitempty"` // canonical
	// Missing says why the value is not there.
	Missing string `json:"missing,omitempty"`
}

// Order is the job that an await starts.
type Order struct {
	Flow string `json:"flow"`
	Key  string `json:"key"`
}

// Failure is an error.
type Failure struct {
	Class   string          `json:"class"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
	Stack   string          `json:"stack,omitempty"`
}

// Duration is a time.Duration; in JSON it is a number of microseconds.
type Duration time.Duration

// String is that of time.Duration.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes microseconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, time.Duration(d).Microseconds(), 10), nil
}

// UnmarshalJSON reads microseconds.
func (d *Duration) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	*d = Duration(time.Duration(n) * time.Microsecond)
	return err
}

// EffectState is how far an effect came.
type EffectState string

// The states of an effect.
const (
	EffectStarted   EffectState = "started"   // its call outside is running, or its outcome is unknown
	EffectCompleted EffectState = "completed" // with a result, or an error that is one
	EffectNotDone   EffectState = "not_done"  // it runs again under the next key (E5)
)

// Effect is an effect of a job.
type Effect struct {
	Key journal.Digest `json:"effect"`
	// Job and JobKey name the job, where the effect stands alone.
	Job      journal.JobID `json:"job,omitzero"`
	JobKey   string        `json:"job_key,omitempty"`
	Name     string        `json:"name"`
	State    EffectState   `json:"state"`
	Class    string        `json:"class"`
	NotDone  int           `json:"n"` // how often it was recorded as not done before
	Result   *Value        `json:"result,omitempty"`
	Error    *Failure      `json:"error,omitempty"`   // which is its result
	Vouched  bool          `json:"vouched,omitempty"` // an operator confirmed the result (3.3)
	Request  journal.GUID  `json:"request"`
	Activity string        `json:"activity"`
	Address  string        `json:"address"`
	Element  *int          `json:"element,omitempty"` // nil: of no list
	Position string        `json:"position,omitempty"`
	// Entries are those that tell of it: of the request's chain, then those of operators in the main
	// chain. The journal tells them.
	Entries []EffectEntry `json:"entries,omitempty"`
}

// EffectEntry is an entry of the journal about an effect.
type EffectEntry struct {
	Kind   journal.Kind `json:"kind"`
	Entry  int64        `json:"entry"` // in the chain of the request; for an operator's entry in the main chain
	Time   time.Time    `json:"time"`
	Turn   int          `json:"turn,omitempty"`
	Fence  int64        `json:"fence,omitempty"`
	Late   bool         `json:"late,omitempty"`
	By     string       `json:"by,omitempty"` // the process, or the operator
	Action string       `json:"action,omitempty"`
	Reason string       `json:"reason,omitempty"`
	// Finding is who found the outcome, where the call did not tell it.
	Finding *Finding `json:"finding,omitempty"`
}

// Finding is what a verifier said of an effect.
type Finding struct {
	Verifier string    `json:"verifier"`
	Error    string    `json:"error,omitempty"` // of the call; "": its run was cut off
	Asked    time.Time `json:"asked"`
	Took     Duration  `json:"took_us"`
	Note     string    `json:"note,omitempty"`
	Text     string    `json:"text"` // who found the outcome, and why he was asked
}

// FailureOf is an error of the journal; nil for none.
func FailureOf(f *journal.Failure) *Failure {
	if f == nil {
		return nil
	}
	return &Failure{Class: f.Class, Message: f.Message, Data: f.Data, Stack: f.Stack}
}
