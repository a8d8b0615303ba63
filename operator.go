package quipu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// Operator lists dead letters and decides on them (E10). Every decision is an entry in the
// journal, with who took it and why.
type Operator struct{ rt *Runtime }

// Operator returns the operator's interface to the space.
func (rt *Runtime) Operator() Operator { return Operator{rt} }

// DeadLetter is a message that cannot go on by itself. Its dispatch row, if it has one, is held
// until an operator decides or a late answer arrives.
type DeadLetter struct {
	ID       int64
	Job      Job    // zero for a message without a job
	Flow     string // of the job
	Topic    string // of the request, while its row exists
	Kind     string // of the message: request, leg1, wakeup, outcome, …
	Activity string
	Address  string // of the activity's instance
	Ledger   string // the instance's 15 digits when the dead letter was written; empty for none
	Reason   string // a short name: parked, confirm, result_misfit, nondeterminism, undo, runs, stuck, undecodable, foreign, refused, changed
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

// DeadLetterFilter selects a page of dead letters. A zero field does not filter.
type DeadLetterFilter struct {
	All    bool // also those that have ended
	Flow   string
	Topic  string // of the request, while its row exists
	Reason string
	Jobs   []journal.JobID // at most 1 000; with it only All and Limit of the other fields count
	Before int64           // the ID of the last one of the previous page
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

// DroppedLetters says how many dead letters of the space retention has dropped: of those that
// anybody could have caused, because no row was read for their message, it keeps the newest 1 000,
// with at most 16 MiB of texts and messages (S15).
func (o Operator) DroppedLetters(ctx context.Context) (int64, error) {
	return o.rt.store.DroppedLetters(ctx)
}

// Verdict is an operator's decision on a dead letter.
type Verdict string

// The verdicts.
const (
	// Retry releases the message, to be sent again. An unfinished Guarded effect for which it was
	// parked counts as not done and runs again under the next key. For another unfinished effect,
	// or a completed one that its verifier doubts, this holds only if Decision.Effect names it;
	// otherwise the verifier is asked again.
	Retry Verdict = "retry"
	// Done says that the effect was done, with Decision.Result as the result of its function. It
	// is recorded, and the handler goes on. A completed effect that its verifier doubts is
	// confirmed, and not verified again: the result is the recorded one, or nil for whatever was
	// recorded. Decision.Effect is needed where several effects are in doubt.
	Done Verdict = "done"
	// Resolve ends the request with Decision.Result as the result of the whole handler, which
	// does not run again.
	Resolve Verdict = "resolve"
	// Fail ends the request with an error made of Decision.Code and Message.
	Fail Verdict = "fail"
)

// Decision is a decision on one dead letter. A field that does not belong to the verdict must be
// zero.
type Decision struct {
	DeadLetter int64
	Verdict    Verdict
	Effect     journal.Digest // the key of the effect that the verdict is about
	Result     any            // anything that encoding/json marshals; json.RawMessage is taken as it is
	Code       int            // 400 to 599; defaults to 500
	Message    string
	// Who decides and the Reason are recorded in the journal.
	Who, Reason string
}

// Decide acts on a dead letter. Errors: ErrNotFound; ErrInput for a decision with the wrong
// fields, or one that the dead letter does not ask for; ErrStale if the dead letter has ended already.
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
	err := o.rt.committer.Act(ctx, a)
	if errors.Is(err, collation.ErrAction) {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return err
}
