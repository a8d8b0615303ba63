package quipu

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/internal/repair"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/view"
)

// Operator does what a person decides: about dead letters (E10), flows, and jobs that differ from their
// journal. Every decision is an entry, in the journal or in the space's own chain, with who took it.
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
	// confirmed, and not verified again: the result is the recorded one, or JSON null for whatever
	// was recorded. A Result of nil is refused, since what is recorded stays. Decision.Effect is
	// needed where several effects are in doubt.
	Done Verdict = "done"
	// Resolve ends the request with Decision.Result as the result of the whole handler, which
	// does not run again. A Result of nil is JSON null.
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

// exampleResult is a result as a person writes it.
const exampleResult = `"wired"`

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
	case d.Result == nil && d.Verdict == Done:
		return fmt.Errorf("%w: decision on dead letter %d: the result is missing: what the effect's function would have returned, as JSON, for example %s", ErrInput, d.DeadLetter, exampleResult)
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
			a.Done, a.Response = nil,
				&journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: result}
		}
	case Fail:
		if d.Code == 0 {
			d.Code = collation.CodeInternal
		}
		a.Response = &journal.Response{
			Kind: journal.ResponseTerminal, Code: d.Code,
			Error: &journal.Failure{Class: "operator", Message: wire.CutText(d.Message)},
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

// The reasons of dead letters; docs/cli.md says of each what to do.
const (
	ReasonParked         view.LetterReason = "parked"         // the outcome of an effect is not known
	ReasonConfirm        view.LetterReason = "confirm"        // a verifier contradicts a recorded effect
	ReasonResultMisfit   view.LetterReason = "result_misfit"  // a recorded result does not fit its type
	ReasonNondeterminism view.LetterReason = "nondeterminism" // a durable function took another path
	ReasonUndo           view.LetterReason = "undo"           // a compensation fails
	ReasonUnbegun        view.LetterReason = "unbegun"        // compensations cannot begin; they are tried again
	ReasonRuns           view.LetterReason = "runs"           // its request ran too often without a response
	// it reached a limit of its job, or the store refuses what it brings
	ReasonStuck       view.LetterReason = "stuck"
	ReasonSlow        view.LetterReason = "slow"        // the decision on it took too long on a machine, three times
	ReasonLoads       view.LetterReason = "loads"       // the decision on it asked for state too often
	ReasonUndecodable view.LetterReason = "undecodable" // it, or its row, cannot be read
	ReasonForeign     view.LetterReason = "foreign"     // its job or its space is not here
	ReasonRefused     view.LetterReason = "refused"     // a signal that cannot be delivered
	ReasonChanged     view.LetterReason = "changed"     // stored bytes of its job are not those that were recorded
)

// reasons are all of them.
var reasons = []view.LetterReason{
	ReasonParked, ReasonConfirm, ReasonResultMisfit, ReasonNondeterminism, ReasonUndo, ReasonUnbegun,
	ReasonRuns, ReasonStuck, ReasonSlow, ReasonLoads, ReasonUndecodable, ReasonForeign, ReasonRefused, ReasonChanged,
}

// The states of a dead letter.
const (
	LetterOpen     view.LetterState = collation.LetterOpen
	LetterRetried  view.LetterState = collation.LetterRetried  // by an operator, as the next two
	LetterResolved view.LetterState = collation.LetterResolved // by a result, or by what was said of an effect
	LetterFailed   view.LetterState = collation.LetterFailed   // by an error
	LetterAnswered view.LetterState = collation.LetterAnswered // the answer of its message came after all
)

// DeadLetterFilter selects a page of dead letters. A zero field does not filter.
type DeadLetterFilter struct {
	All    bool // also those that have ended
	Flow   string
	Topic  string // of the request, while its row exists
	Reason view.LetterReason
	Prefix string // of the job's key
	// From and To select those that were written at From or later, and before To.
	From, To time.Time
	Jobs     []journal.JobID // at most 1 000; with it only All and Limit of the other fields count
	Before   int64           // the ID of the last one of the previous page
	Limit    int             // defaults to 100, at most 1 000
}

// DeadLetters lists a page of dead letters, newest first. ErrInput says that there is no such
// Reason, ErrKey that the Prefix begins a key that is private.
func (o Operator) DeadLetters(ctx context.Context, f DeadLetterFilter) ([]view.DeadLetter, error) {
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
	all := make([]view.DeadLetter, len(views))
	for i := range views {
		all[i] = inspect.LetterOf(&views[i])
	}
	return all, nil
}

// DroppedLetters says how many dead letters of the space retention has dropped: of those that
// anybody could have caused, because no row was read for their message, it keeps the newest 1 000,
// with at most 16 MiB of texts and messages (S15).
func (o Operator) DroppedLetters(ctx context.Context) (int64, error) {
	return o.rt.store.DroppedLetters(ctx)
}

// Difference is one thing in the tables of a job that is not what its journal gives. Without a
// Column it is the whole row: Stored is "" for one that is missing, Journal for one that must not
// stand. Long values are cut. Left says why the journal cannot give it back, and what to do; "":
// Repair rebuilds it.
type Difference struct {
	journal.Difference

	Left string
}

// Findings are what Fsck found out about one job.
type Findings struct {
	Job   Job
	State journal.JobState // as stored
	// Broken is the law that the journal itself breaks, "" for none. Then the tables cannot be
	// rebuilt.
	Broken string
	// Differences are at most 1 000; Unlisted counts the others.
	Differences []Difference
	Unlisted    int
}

// Fsck compares the tables of a job with its journal (S11). It only reads, in one snapshot, and
// it needs no more than read rights. Errors: ErrNotFound, ErrTombstone, or the store's.
func (o Operator) Fsck(ctx context.Context, job journal.JobID) (Findings, error) {
	x, err := o.examine(ctx, job)
	if err != nil {
		return Findings{}, err
	}
	return findings(x), nil
}

// maxRepairs bounds how often a repair is decided again because the job has changed.
const maxRepairs = 5

// Repair rebuilds the tables of a job from its journal, never the other way round (S11). It
// writes everything in one transaction, with an entry that holds the difference, who and why.
// Then the job goes on: it is open again if the journal says so, and its rows are due. The
// findings are those before the repair. Errors: ErrNotFound; ErrTombstone; ErrRepair, with the findings;
// ErrStale if the job changed all the time; or the store's: with ErrUnavailable nothing was
// changed, with ErrUnknown it may have been.
func (o Operator) Repair(ctx context.Context, job journal.JobID, who Who, reason Reason) (Findings, error) {
	if err := o.rt.proc.Covers("to repair a job"); err != nil {
		return Findings{}, err
	}
	for n := 1; ; n++ {
		x, err := o.examine(ctx, job)
		if err != nil {
			return Findings{}, err
		}
		f := findings(x)
		if err := x.Refused(); err != nil {
			return f, fmt.Errorf("job %.80q: %w: %w", f.Job.Key, ErrRepair, err)
		}
		x.Who, x.Reason = wire.CutText(string(who)), wire.CutText(string(reason))
		err = o.rt.committer.Repair(ctx, &x.Repairing, x.Guards())
		switch {
		case errors.Is(err, collation.ErrAction):
			return f, fmt.Errorf("job %.80q: %w: %w", f.Job.Key, ErrRepair, err)
		case err == nil, n == maxRepairs, !errors.Is(err, ErrStale):
			return f, err
		}
	}
}

// examine reads a job, and decides what a repair of it would write.
func (o Operator) examine(ctx context.Context, id journal.JobID) (x *repair.Case, err error) {
	cfg := o.rt.committer.Config()
	read := func(s *store.Stored, records iter.Seq2[journal.Record, error]) (err error) {
		if s.Job.State == journal.JobExpired { // there is nothing to compare its tombstone with
			return ErrTombstone
		}
		x, err = repair.Read(s, records, cfg.Mode())
		return err
	}
	if err := o.rt.store.Audit(ctx, id, read); err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	return x, nil
}

func findings(x *repair.Case) Findings {
	out := Findings{
		Job: Job{ID: x.Stored.ID, Key: x.Stored.Key}, State: x.Stored.State, Broken: x.Broken, Unlisted: x.Unlisted,
	}
	for _, d := range x.Found {
		out.Differences = append(out.Differences, Difference(d))
	}
	return out
}

// Keys acts on the keys of a space, with which its messages are signed (S1). Runtime.Keys returns
// one.
type Keys struct{ rt *Runtime }

// Key is one root secret of a space, without the secret.
type Key struct {
	ID    int       // from 1; a later key has a higher one
	Signs time.Time // it signs from then on, until a later key does
	Ends  time.Time // from then on no message that it signed is accepted; zero: it holds
}

// Keys returns what an operator does with the keys of the space.
func (rt *Runtime) Keys() Keys { return Keys{rt} }

// List returns the keys, the oldest first, at most 1 000. It returns none to a login that may not
// read them, such as a worker's.
func (k Keys) List(ctx context.Context) ([]Key, error) {
	read, err := k.rt.store.Keys(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Key, len(read.Roots))
	for i, r := range read.Roots {
		all[i] = Key{ID: r.ID, Signs: time.UnixMicro(r.Signs)}
		if r.Ends != 0 {
			all[i].Ends = time.UnixMicro(r.Ends)
		}
	}
	return all, nil
}

// Rotate adds a key and returns its id. All processes read it before it signs, a minute later; the
// key before it holds for a day more. With atOnce the new key signs at once and no other holds:
// for a key that was stolen; each process acts on that within some seconds. Messages that are under
// way then come again by their rows. Workers in
// other languages need their topic's new key (Topic): within the day, or at once. It needs the
// owner's rights.
func (k Keys) Rotate(ctx context.Context, atOnce bool) (id int, err error) {
	return k.rt.store.RotateKeys(ctx, atOnce)
}

// Topic returns the keys of a topic that hold, the newest first, as a worker in another language
// is configured with them: ID:HEX, with commas between (S3). Who has them can answer the requests
// of the topic. The error says where the login may not read the keys of the space.
func (k Keys) Topic(ctx context.Context, topic string) (string, error) {
	if err := transport.ValidateTopic(topic); err != nil {
		return "", err
	}
	read, err := k.rt.store.Keys(ctx)
	if err != nil {
		return "", err
	}
	ring := keyring.New(read)
	if !ring.Derives() {
		return "", fmt.Errorf("the keys of space %s: this login may not read them: use that of an engine or of the owner", k.rt.cfg.Space)
	}
	var texts []string
	for _, t := range ring.TopicKeys(topic) {
		texts = append([]string{t.String()}, texts...)
	}
	return strings.Join(texts, ","), nil
}

// On says whether the messages of the space are signed, and refused without a signature (S3).
func (k Keys) On(ctx context.Context) (bool, error) {
	read, err := k.rt.store.Keys(ctx)
	return read.On, err
}

// Switch lets the space sign its messages, or not. It is a setting of the space, and all processes
// follow within some seconds. In between they refuse some of each other's messages, which come
// again by their rows. It needs the owner's rights.
func (k Keys) Switch(ctx context.Context, on bool) error { return k.rt.store.SetSigned(ctx, on) }

// Tokens acts on the tokens of a space, with which programs and people use its HTTP API (O11).
// Runtime.Tokens returns one.
type Tokens struct{ rt *Runtime }

// Token is a token of a space, without its secret, which is stored nowhere.
type Token struct {
	Name       string // of who has it, for the journal
	Role       access.Role
	Made, Ends time.Time // Ends is zero for one that holds until it is revoked
}

// Tokens returns what an operator does with the tokens of the space.
func (rt *Runtime) Tokens() Tokens { return Tokens{rt} }

// Create makes a token and returns it: nobody can read it again. The name is that of who will
// have it; 1 to access.MaxName bytes, and no other token of the space has it. It holds for the
// given time, at most flow.MaxExpire, and for 0 until it is revoked. Errors: ErrInput, ErrRejected
// if the name has a token. It needs the owner's rights.
func (t Tokens) Create(ctx context.Context, name string, role access.Role, holds time.Duration) (string, error) {
	if err := access.CheckName(name); err != nil {
		return "", fmt.Errorf("%w: %w", ErrInput, err)
	}
	if !role.Valid() {
		return "", fmt.Errorf("%w: role %.40q: the roles are %v", ErrInput, role, access.Roles())
	}
	if holds < 0 || holds > flow.MaxExpire {
		return "", fmt.Errorf("%w: a token holds for up to %v, or with 0 until it is revoked: %v", ErrInput, flow.MaxExpire, holds)
	}
	token := access.NewToken()
	hash, _ := access.Hash(token)
	return token, t.rt.store.AddToken(ctx, hash, name, role, holds)
}

// List returns the tokens, the oldest first, also those that have ended.
func (t Tokens) List(ctx context.Context) ([]Token, error) {
	stored, err := t.rt.store.Tokens(ctx)
	all := make([]Token, len(stored))
	for i, s := range stored {
		all[i] = Token{Name: s.Name, Role: s.Role, Made: moment(s.Made), Ends: moment(s.Ends)}
	}
	return all, err
}

// Revoke ends a token at once: ErrNotFound. It needs the owner's rights.
func (t Tokens) Revoke(ctx context.Context, name string) error {
	return t.rt.store.RevokeToken(ctx, name)
}

// Who says whose token it is, and whether it holds now. It is what access.Config.Tokens takes. A
// token that held before is looked up each time. Tokens that are not known are looked up one by one
// as long as there are few of them; while many are tried, a token that was just made is known after
// a quarter of a second.
func (t Tokens) Who(ctx context.Context, token string) (who access.Who, holds bool, err error) {
	return t.rt.tokens.Who(ctx, token)
}
