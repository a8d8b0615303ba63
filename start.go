package quipu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of a start.
const (
	MaxKey    = engine.MaxKey   // bytes of a job's key
	MaxInput  = engine.MaxInput // bytes of a job's input, in its canonical form
	MaxStarts = engine.MaxStarts
	MaxTags   = engine.MaxTags
	MaxTag    = engine.MaxTag // bytes
	MaxDelay  = flow.MaxSleep // the longest delay of a start
)

// Errors of calls.
var (
	// ErrNotFound says that there is no such job, flow or dead letter.
	ErrNotFound = store.ErrNotFound
	// ErrUnavailable says that a server is away. Nothing was done; the call may be repeated.
	ErrUnavailable = store.ErrUnavailable
	// ErrUnknown says that the database's answer was lost. The call may have taken effect, and
	// may be repeated.
	ErrUnknown = store.ErrUnknown
	// ErrRefused says that an engine refused the start that this client asked for, and why: another
	// job has the key, the flow is not there, or the input does not fit it (S8). Nothing was begun.
	ErrRefused = engine.ErrRefused
	// ErrStale says that the call came too late: somebody else has decided, or it has ended.
	ErrStale = store.ErrStale
	// ErrRejected says that the database cannot store the given value.
	ErrRejected = store.ErrRejected
	// ErrVersionTaken says that the flow's version is deployed with other content.
	ErrVersionTaken = store.ErrVersionTaken
	// ErrSchema says that the schema of the space does not fit this build.
	ErrSchema = store.ErrSchema
	// ErrInput says that the input is no JSON, too large, or does not fit the flow's schema.
	ErrInput = engine.ErrInput
	// ErrKey says that the key is missing, longer than MaxKey, no UTF-8, has control characters,
	// or is not the key that identity strict derives (E16).
	ErrKey = engine.ErrKey
)

// ConflictError says that the key of a start belongs to a job of another flow or with another
// input (1.11). Nothing was begun.
type ConflictError struct {
	Job           Job    // the job that has the key
	Flow, Version string // what that job was started from
	// SameFlow and SameInput say what agrees; the flow of a Call is its topic.
	SameFlow, SameInput bool
}

// Error says what differs.
func (e *ConflictError) Error() string {
	differs := "with another input"
	if !e.SameFlow {
		differs = fmt.Sprintf("of flow %s version %s", e.Flow, e.Version)
	}
	return fmt.Sprintf("the key %.80q has a job %s: take another key", e.Job.Key, differs)
}

// Job names one job of the space. For methods that read and wait the Key alone is enough: they
// look the ID up.
type Job struct {
	ID  journal.JobID
	Key string
	// Existing says that the key already had this job, from the same flow and with the same
	// input, and nothing was begun. A caller may meet its own job this way: when the answer to
	// its commit is lost, the call asks again and finds what it has started.
	Existing bool
	// Asked is set by StartTx with the login of a client: the record of what an engine makes of the
	// start (S8). By it Wait waits for the begin, and all that take a Job say ErrRefused with the
	// reason. Keep it with the key where another process is to wait.
	Asked journal.GUID
}

// StartRequest is one job to start. Input is anything that encoding/json
// marshals; json.RawMessage is taken as it is.
type StartRequest struct {
	Flow    string
	Version string // of the flow; empty means the active one
	Key     string // under identity strict: empty, or the key that it derives
	Input   any
	// At and Delay put off the start of the job, by the database's clock; Delay counts from the
	// inception. The later one counts, at most MaxDelay from now. The job exists and is open at
	// once. A time that has passed means now.
	At    time.Time
	Delay time.Duration
	// Tags are labels by which Jobs finds the job (JobFilter.Tags): at most MaxTags, each of 1 to
	// MaxTag bytes.
	Tags []string
	// Who asks for the job, for the journal (O11). Empty where the process itself does.
	Who string
}

// StartResult is the outcome of one StartRequest.
type StartResult struct {
	Job Job
	Err error // nil, *ConflictError, or why the start was refused
}

// Start begins one job on the active version of the flow. If the key has a job already, from the
// same flow (in any version) and with the same input, it returns that job with Existing set; a
// job with other content gives *ConflictError. Other errors: ErrInput, ErrKey, ErrNotFound for a
// flow that is not deployed, ErrUnavailable (nothing was begun), ErrUnknown (the job may have
// begun; repeat the call).
//
// With a database login of the role client an engine begins the job, and Start waits for it, at
// most 30 s: ErrUnknown then (S8). What the engine does not start is ErrRefused.
func (rt *Runtime) Start(ctx context.Context, flowName, key string, input any, opts ...StartOption) (Job, error) {
	r := StartRequest{Flow: flowName, Key: key, Input: input}
	for _, o := range opts {
		o.toStart(&r)
	}
	res, err := rt.StartMany(ctx, []StartRequest{r})
	if err != nil {
		return Job{}, err
	}
	return res[0].Job, res[0].Err
}

// started turns the store's answer into that of Start.
func started(key string, s store.Started) (Job, error) {
	job := Job{ID: s.Job, Key: key, Asked: s.Asked}
	there, is := errors.AsType[*store.AlreadyStartedError](s.Err)
	switch {
	case !is:
		return job, s.Err
	case there.SameFlow && there.SameInput:
		job.Existing = true
		return job, nil
	}
	return job, &ConflictError{
		Job: job, Flow: there.Flow.Name, Version: there.Flow.Version, SameFlow: there.SameFlow, SameInput: there.SameInput,
	}
}

// StartMany begins up to MaxStarts jobs; the results are in the order of the requests. Each
// request succeeds or fails alone: with ErrUnavailable the job was not begun, with ErrUnknown it
// may have been; both may be repeated. The jobs share transactions with each other and with the
// rest of the process's commits. The second result is an error only if there are too many
// requests.
func (rt *Runtime) StartMany(ctx context.Context, reqs []StartRequest) ([]StartResult, error) {
	if len(reqs) > MaxStarts {
		return nil, fmt.Errorf("%w: %d jobs in one call, the limit is %d", ErrInput, len(reqs), MaxStarts)
	}
	out := make([]StartResult, len(reqs))
	todo := make([]int, len(reqs))
	for i := range reqs {
		todo[i] = i
	}
	for attempt := 0; len(todo) > 0; attempt++ {
		starts := make([]store.Start, 0, len(todo))
		at := make([]int, 0, len(todo))
		for _, i := range todo {
			s, err := rt.prepare(ctx, reqs[i])
			if err != nil {
				out[i].Err = err
				continue
			}
			starts, at = append(starts, s), append(at, i)
		}
		todo = todo[:0]
		for n, s := range rt.proc.Begin(ctx, starts) {
			if errors.Is(s.Err, engine.ErrFlowMoved) && attempt < maxFlowMoves {
				todo = append(todo, at[n])
				continue
			}
			r := &out[at[n]]
			r.Job, r.Err = started(starts[n].Key, s)
		}
	}
	return out, nil
}

// maxFlowMoves bounds how often a start is prepared again because another version of its flow
// became active meanwhile.
const maxFlowMoves = 5

// prepare checks one request against its flow.
func (rt *Runtime) prepare(ctx context.Context, r StartRequest) (store.Start, error) {
	ref, f, err := rt.flows.Resolve(ctx, r.Flow, r.Version)
	if err != nil {
		return store.Start{}, err
	}
	tags, err := engine.CheckTags(r.Tags)
	if err != nil {
		return store.Start{}, err
	}
	if r.Delay < 0 || r.Delay > MaxDelay || time.Until(r.At) > MaxDelay {
		return store.Start{}, fmt.Errorf("%w: key %.80q: a start is delayed by 0s to %v", ErrInput, rt.proc.Kept(r.Key), MaxDelay)
	}
	input, err := marshal(r.Input)
	if err != nil {
		return store.Start{}, fmt.Errorf("%w for flow %s, key %.80q: %w", ErrInput, r.Flow, rt.proc.Kept(r.Key), err)
	}
	key, err := rt.checkStart(ctx, f, r.Key, input)
	if err != nil {
		return store.Start{}, err
	}
	if f.Identity() == flow.Strict && r.Key != "" && key != rt.proc.Kept(f.StrictKey(input)) {
		return store.Start{}, fmt.Errorf("%w: %.80q: flow %s derives the key of a job from its input (identity: strict): leave the key out",
			ErrKey, key, f.Name())
	}
	start := store.Start{
		Flow: ref, Active: r.Version == "", Trigger: f.Trigger().Name, Key: key, Input: input, Tags: tags, Delay: r.Delay, Who: wire.CutText(r.Who),
	}
	if !r.At.IsZero() {
		start.At = max(0, collation.Micros(r.At.UnixMicro()))
	}
	return start, nil
}

// checkStart is engine.CheckStart, as long as somebody waits for it. Errors: also ErrUnavailable, with
// the cause of ctx: nothing was begun.
func (rt *Runtime) checkStart(ctx context.Context, f *flow.Flow, key string, input []byte) (string, error) {
	key, err := engine.CheckStart(f, key, input, rt.proc.Kept, func() bool { return ctx.Err() != nil })
	if errors.Is(err, flow.ErrStopped) {
		err = fmt.Errorf("%w: %w: %w", store.Unavailable("nothing was begun"), context.Cause(ctx), err)
	}
	return key, err
}

// marshal returns the canonical form of an input.
func marshal(v any) ([]byte, error) {
	input, err := canonical.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(input) > MaxInput {
		return nil, fmt.Errorf("the input has %d bytes in its canonical form, the limit is %d", len(input), MaxInput)
	}
	return input, nil
}
