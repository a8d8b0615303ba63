package quipu

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// Operator is what people decide: what becomes of messages that cannot go on by
// themselves (E10). Every decision is an entry in the journal, with who and why.
type Operator struct{ rt *Runtime }

// Operator gives the decisions that people take.
func (rt *Runtime) Operator() Operator { return Operator{rt} }

// DeadLetter is a message that cannot go on by itself. Its row, if it has one, is held
// until somebody decides, or its answer comes after all.
type DeadLetter struct {
	ID       int64
	Job      Job    // zero for a message without a job
	Flow     string // of the job
	Topic    string // of a request that is there still
	Kind     string // of the message: request, leg1, wakeup, outcome, …
	Activity string
	Address  string // of the activity's instance
	Ledger   string // of that instance when the dead letter was written, 15 digits; empty for none
	Reason   string // a short name: parked, confirm, result_misfit, nondeterminism, undo, runs, stuck, undecodable, foreign, refused
	Message  string
	At       time.Time
	State    string // open, retried, resolved, failed, or answered
}

func deadLetter(v *store.DeadView) DeadLetter {
	ledger := ""
	if v.Letter.Ledger != 0 {
		ledger = v.Letter.Ledger.String()
	}
	return DeadLetter{
		Kind: string(v.Letter.Kind), Ledger: ledger,
		ID: v.ID, Job: Job{ID: v.Letter.Job, Key: v.Key}, Flow: v.Flow, Topic: v.Topic, Activity: v.Letter.Activity, Address: string(v.Letter.DAD),
		Reason: v.Letter.Reason, Message: v.Letter.Message, At: time.UnixMicro(int64(v.At)), State: v.State,
	}
}

// DeadLetterFilter selects a page of dead letters. What is zero is not asked for.
type DeadLetterFilter struct {
	All    bool // those that have ended, too
	Flow   string
	Topic  string // of a request that is there still
	Reason string
	Jobs   []journal.JobID // at most 1 000: of these alone, whatever else is asked for but All
	Before int64           // the ID of the last one of the page before
	Limit  int             // defaults to 100, at most 1 000
}

// DeadLetters lists a page of dead letters, newest first.
func (o Operator) DeadLetters(ctx context.Context, f DeadLetterFilter) ([]DeadLetter, error) {
	views, err := o.rt.store.DeadLetters(ctx, store.DeadFilter{
		All: f.All, Flow: f.Flow, Topic: f.Topic, Reason: f.Reason, Jobs: f.Jobs, Before: f.Before, Limit: f.Limit,
	})
	if err != nil {
		return nil, err
	}
	all := make([]DeadLetter, len(views))
	for i := range views {
		all[i] = deadLetter(&views[i])
	}
	return all, nil
}

// Verdict is what somebody decides about a dead letter.
type Verdict string

// The verdicts.
const (
	// Retry releases the message: it is tried again. Of a parked Guarded effect that is
	// unfinished this says that it was not done; of another one, or of a completed one that
	// its verifier doubts, only where Decision.Effect is given: it then runs again, under the
	// next key. Without, such a verifier is asked again.
	Retry Verdict = "retry"
	// Done says of the effect that the dead letter is about that it was done, with
	// Decision.Result of its function: it is recorded, and the handler goes on. A completed
	// effect that its verifier doubts is confirmed by its recorded result, or by nil for
	// whatever that is; it is not verified again. Decision.Effect is needed where several
	// are in doubt.
	Done Verdict = "done"
	// Resolve ends the request with Decision.Result: that of its whole handler, which does
	// not run again.
	Resolve Verdict = "resolve"
	// Fail ends the request with the error of Decision.Code and Message.
	Fail Verdict = "fail"
)

// Decision is what becomes of one dead letter. Fields that the verdict does not name
// are zero.
type Decision struct {
	DeadLetter int64
	Verdict    Verdict
	Effect     journal.Digest // the key of the effect that is meant
	Result     any            // anything that encoding/json marshals; json.RawMessage is taken as it is
	Code       int            // 400 to 599; defaults to 500
	Message    string
	// Who decides, and why, are in the journal.
	Who, Reason string
}

// Decide acts on a dead letter. The error is ErrNotFound, ErrInput for a decision that
// makes no sense, or ErrStale: it has ended already.
func (o Operator) Decide(ctx context.Context, d Decision) error {
	a := store.Action{ID: d.DeadLetter, Effect: d.Effect, Who: wire.CutText(d.Who), Reason: wire.CutText(d.Reason)}
	misfit := func(what string) error {
		return fmt.Errorf("%w: decision on dead letter %d: %s has no %s", ErrInput, d.DeadLetter, d.Verdict, what)
	}
	switch {
	case (d.Code != 0 || d.Message != "") && d.Verdict != Fail:
		return misfit("Code and Message")
	case d.Result != nil && d.Verdict != Done && d.Verdict != Resolve:
		return misfit("Result")
	case d.Effect != (journal.Digest{}) && d.Verdict != Retry && d.Verdict != Done:
		return misfit("Effect")
	}
	switch d.Verdict {
	case Retry:
		a.Retry = true
	case Done, Resolve:
		result, err := marshal(d.Result)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInput, err)
		}
		if a.Done = result; d.Verdict == Resolve {
			a.Done, a.Response = nil, &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: result}
		}
	case Fail:
		if d.Code == 0 {
			d.Code = collation.CodeInternal
		}
		a.Response = &journal.Response{
			Kind: journal.ResponseTerminal, Code: d.Code, Error: &journal.Failure{Class: "operator", Message: wire.CutText(d.Message)},
		}
		if _, err := wire.FromJournal(a.Response).Journal(); err != nil {
			return fmt.Errorf("%w: %w", ErrInput, err)
		}
	default:
		return fmt.Errorf("%w: decision on dead letter %d: verdict %q: use Retry, Done, Resolve or Fail", ErrInput, d.DeadLetter, d.Verdict)
	}
	return o.rt.committer.Act(ctx, a)
}
