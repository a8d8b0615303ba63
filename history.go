package quipu

import (
	"context"
	"encoding/json"
	"time"

	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/journal"
)

// MaxHistory bounds the entries of a job whose History can be read.
const MaxHistory = inspect.MaxHistory

// Event is one thing that happened in a job.
type Event struct {
	Time time.Time // by the database's clock
	// Kind is started, sent, done, failed, attempt, waits, woke, signal, child, effect, parked,
	// operator, late, closed or other.
	Kind string
	// Activity and Address name the instance; empty for the job as a whole.
	Activity, Address string
	Pass              int    // which pass of a loop or of a repeating hook it is, from 1
	Element           int    // the place in the list of an `each`, from 0; -1 for none
	Text              string // what happened, in a few words without the values below
	Attempt           int    // the attempt that the event is about, from 1; 0 for none
	Code              int    // of an end; 0 otherwise
	// Input and Output are canonical; nil where there is none, or it is not known any more.
	Input, Output json.RawMessage
	Error         *journal.Failure
	Job           journal.JobID // another job that the event is about: a child, a parent, a target
	Due           time.Time     // when it goes on without any event; zero if it does not
	// Waited is how long one attempt of a request waited for a worker, and Ran how long the worker
	// ran; 0: not known. Other waits only have Waited.
	Waited, Ran time.Duration
	// Chain and Seq name the entry of the event; Chain is zero for the main chain.
	Chain journal.GUID
	Seq   int64
}

// History returns the events of a job in the order of time: inputs and outputs of activities,
// attempts, effects, signals, children. Errors: ErrNotFound, ErrTombstone, or one that says that
// the job has over MaxHistory entries.
func (rt *Runtime) History(ctx context.Context, job Job) ([]Event, error) {
	job, err := rt.known(ctx, job)
	if err != nil {
		return nil, err
	}
	all, err := inspect.History(ctx, rt.store, job.ID)
	if err != nil {
		return nil, err
	}
	out := make([]Event, len(all))
	for i := range all {
		e := &all[i]
		out[i] = Event{
			Time: e.Time, Kind: string(e.Kind), Activity: e.Activity, Address: e.Address, Pass: e.Pass, Element: e.Element, Text: e.Text,
			Attempt: e.Attempt, Code: e.Code, Input: known(e.Input), Output: known(e.Output), Error: e.Error, Job: e.Job, Due: e.Due,
			Waited: e.Waited, Ran: e.Ran, Chain: e.Chain, Seq: e.Seq,
		}
	}
	return out, nil
}

// known is what is known of a value.
func known(v *history.Value) json.RawMessage {
	if v == nil {
		return nil
	}
	return v.JSON
}
