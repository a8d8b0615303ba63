package quipu

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// Operator lists dead letters and decides on them (E10). Every decision is an entry in the
// journal, with who took it and why.
type Operator struct{ rt *Runtime }

// Operator returns the operator's interface to the space.
func (rt *Runtime) Operator() Operator { return Operator{rt} }

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
	if err := o.rt.proc.Covers("to decide on a dead letter"); err != nil {
		return err
	}
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
		return fmt.Errorf("%w: decision on dead letter %d: verdict %.40q: use %s, %s, %s or %s", ErrInput, d.DeadLetter, d.Verdict, Retry, Done, Resolve, Fail)
	}
	err := o.rt.committer.Act(ctx, a)
	if errors.Is(err, collation.ErrAction) {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return err
}
