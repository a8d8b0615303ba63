package quipu

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// DeadLetterReason says in a word why a message cannot go on by itself.
type DeadLetterReason string

// The reasons of dead letters; docs/cli.md says of each what to do.
const (
	ReasonParked         DeadLetterReason = "parked"         // the outcome of an effect is not known
	ReasonConfirm        DeadLetterReason = "confirm"        // a verifier contradicts a recorded effect
	ReasonResultMisfit   DeadLetterReason = "result_misfit"  // a recorded result does not fit its type
	ReasonNondeterminism DeadLetterReason = "nondeterminism" // a durable function took another path
	ReasonUndo           DeadLetterReason = "undo"           // a compensation fails, or cannot begin
	ReasonRuns           DeadLetterReason = "runs"           // its request ran too often without a response
	ReasonStuck          DeadLetterReason = "stuck"          // it reached a limit of its job, or the store refuses what it brings
	ReasonSlow           DeadLetterReason = "slow"           // the decision on it took too long on a machine, three times
	ReasonLoads          DeadLetterReason = "loads"          // the decision on it asked for state too often
	ReasonUndecodable    DeadLetterReason = "undecodable"    // it, or its row, cannot be read
	ReasonForeign        DeadLetterReason = "foreign"        // its job or its space is not here
	ReasonRefused        DeadLetterReason = "refused"        // a signal that cannot be delivered
	ReasonChanged        DeadLetterReason = "changed"        // stored bytes of its job are not those that were recorded
)

// reasons are all of them.
var reasons = []DeadLetterReason{
	ReasonParked, ReasonConfirm, ReasonResultMisfit, ReasonNondeterminism, ReasonUndo, ReasonRuns, ReasonStuck,
	ReasonSlow, ReasonLoads, ReasonUndecodable, ReasonForeign, ReasonRefused, ReasonChanged,
}

// DeadLetterState says what became of a dead letter.
type DeadLetterState string

// The states of a dead letter.
const (
	LetterOpen     DeadLetterState = collation.LetterOpen
	LetterRetried  DeadLetterState = collation.LetterRetried  // by an operator, as the next two
	LetterResolved DeadLetterState = collation.LetterResolved // by a result, or by what was said of an effect
	LetterFailed   DeadLetterState = collation.LetterFailed   // by an error
	LetterAnswered DeadLetterState = collation.LetterAnswered // the answer of its message came after all
)

// DeadLetter is a message that cannot go on by itself. Its dispatch row, if it has one, is held
// until an operator decides or a late answer arrives.
type DeadLetter struct {
	ID       int64
	Job      Job    // zero for a message without a job
	Flow     string // of the job
	Topic    string // of the request, while its row exists
	Kind     journal.MessageKind
	Activity string
	Address  string // of the activity's instance
	Ledger   string // the instance's 15 digits when the dead letter was written; empty for none
	Reason   DeadLetterReason
	Message  string
	At       time.Time
	State    DeadLetterState
}

func deadLetter(v *store.DeadView) DeadLetter {
	ledger := ""
	if v.Letter.Ledger != 0 {
		ledger = v.Letter.Ledger.String()
	}
	return DeadLetter{
		Kind: v.Letter.Kind, Ledger: ledger,
		ID: v.ID, Job: Job{ID: v.Letter.Job, Key: v.Key}, Flow: v.Flow, Topic: v.Topic, Activity: v.Letter.Activity, Address: string(v.Letter.DAD),
		Reason: DeadLetterReason(v.Letter.Reason), Message: v.Letter.Message, At: time.UnixMicro(int64(v.At)), State: DeadLetterState(v.State),
	}
}

// DeadLetterFilter selects a page of dead letters. A zero field does not filter.
type DeadLetterFilter struct {
	All    bool // also those that have ended
	Flow   string
	Topic  string // of the request, while its row exists
	Reason DeadLetterReason
	Prefix string // of the job's key
	// From and To select those that were written at From or later, and before To.
	From, To time.Time
	Jobs     []journal.JobID // at most 1 000; with it only All and Limit of the other fields count
	Before   int64           // the ID of the last one of the previous page
	Limit    int             // defaults to 100, at most 1 000
}

// DeadLetters lists a page of dead letters, newest first. ErrInput says that there is no such
// Reason, ErrKey that the Prefix begins a key that is private.
func (o Operator) DeadLetters(ctx context.Context, f DeadLetterFilter) ([]DeadLetter, error) {
	if f.Reason != "" && !slices.Contains(reasons, f.Reason) {
		return nil, fmt.Errorf("%w: dead letters: reason %.40q: use one of %v", ErrInput, f.Reason, reasons)
	}
	if err := o.rt.checkPrefix(f.Prefix); err != nil {
		return nil, err
	}
	views, err := o.rt.store.DeadLetters(ctx, store.DeadFilter{
		All: f.All, Flow: f.Flow, Topic: f.Topic, Reason: string(f.Reason), Prefix: f.Prefix,
		From: instant(f.From), To: instant(f.To), Jobs: f.Jobs, Before: f.Before, Limit: f.Limit,
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
