package quipu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/engine"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/observer"
)

// Limits of a start.
const (
	MaxKey    = engine.MaxKey   // bytes of a job's key
	MaxInput  = engine.MaxInput // bytes of a job's input, in its canonical form
	MaxStarts = engine.MaxStarts
	MaxTags   = engine.MaxTags
	MaxTag    = engine.MaxTag // bytes
	MaxDelay  = flow.MaxSleep // of a start
)

// Errors of calls.
var (
	// ErrNotFound: no such job, flow or dead letter.
	ErrNotFound = store.ErrNotFound
	// ErrUnavailable: a server is away; nothing was done, and the call may be repeated.
	ErrUnavailable = store.ErrUnavailable
	// ErrUnknown: the answer of the database was lost; it may have been done, and the call
	// may be repeated.
	ErrUnknown = store.ErrUnknown
	// ErrStale: what was to be decided has ended already.
	ErrStale = store.ErrStale
	// ErrRejected: the database cannot keep what was given.
	ErrRejected = store.ErrRejected
	// ErrVersionTaken: the flow's version is deployed with other content.
	ErrVersionTaken = store.ErrVersionTaken
	// ErrSchema: the schema of the space is not that of this build.
	ErrSchema = store.ErrSchema
	// ErrInput: the input is no JSON, too large, or against the flow's schema.
	ErrInput = engine.ErrInput
	// ErrKey: the key is missing, longer than MaxKey, no UTF-8, has control
	// characters, or is not the one that identity strict derives (E16).
	ErrKey = engine.ErrKey
)

// ConflictError says that the key of a start has a job that was started from another flow,
// or with another input (1.11). Nothing was begun.
type ConflictError struct {
	Job           Job    // that has the key
	Flow, Version string // what it was started from
	// SameFlow and SameInput say what the two have in common; a Call's flow is its topic.
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

// Job names one job of the space.
//
// The key alone is enough for what reads and waits: it is looked up then.
type Job struct {
	ID  journal.JobID
	Key string
	// Existing says of a job that a start returns that it was there, from the same flow
	// and with the same input: nothing was begun. It need not have been another caller: a
	// call that loses the answer to its own commit asks again, and finds what it has
	// started.
	Existing bool
}

// StartRequest is one job to start. Input is anything that encoding/json
// marshals; json.RawMessage is taken as it is.
type StartRequest struct {
	Flow    string
	Version string // of the flow; empty: the active one
	Key     string // under identity strict empty, or the one that it derives
	Input   any
	// At is when the job is to start, and Delay how long after it was begun, both by the
	// database's clock: the later of the two, at most MaxDelay from then. The job is there
	// at once, and open. A time that has passed, or none, is at once.
	At    time.Time
	Delay time.Duration
	// Tags are what the job is found by in a list (JobFilter.Tags): at most MaxTags, each
	// of 1 to MaxTag bytes.
	Tags []string
}

// StartResult is what became of one StartRequest.
type StartResult struct {
	Job Job
	Err error // nil, *ConflictError, or why it was refused
}

// Start begins one job on the active version of the flow. Of a key that has a job already,
// from the same flow (of whatever version) and with the same input, it returns that job,
// as Existing; with other content it is *ConflictError. The error is also ErrInput, ErrKey,
// ErrNotFound for a flow that is not deployed, ErrUnavailable: nothing was begun, or
// ErrUnknown: it may have been, and the call may be repeated.
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

// started is the answer to a start of a key.
func started(key string, s store.Started) (Job, error) {
	job := Job{ID: s.Job, Key: key}
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

// StartMany begins up to MaxStarts jobs; the results are in the order of the
// requests. Each job is begun, or refused, by itself: with ErrUnavailable it
// was not, with ErrUnknown it may have been, and the request may be repeated.
// They share transactions with one another, and with what else the process commits.
// The error is about the whole call: it has too many requests.
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
		for n, s := range rt.begin(ctx, starts) {
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

// maxFlowMoves bounds how often a start is prepared anew because its flow got
// another active version meanwhile.
const maxFlowMoves = 5

// begin starts jobs that are checked, at most MaxStarts, each with a trace of its
// own. One whose flow has another active version by now is refused with
// engine.ErrFlowMoved.
func (rt *Runtime) begin(ctx context.Context, starts []store.Start) []store.Started {
	ends := make([]func(error), len(starts))
	for i := range starts {
		s := &starts[i]
		s.Trace, ends[i] = rt.cfg.Observer.Root(ctx, observer.Subject{Space: rt.cfg.Space, Key: s.Key, Flow: s.Flow.Name})
	}
	started := rt.committer.Start(ctx, starts)
	for i, end := range ends {
		end(started[i].Err)
	}
	return started
}

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
		return store.Start{}, fmt.Errorf("%w: key %.80q: a start is delayed by 0s to %v", ErrInput, r.Key, MaxDelay)
	}
	input, err := marshal(r.Input)
	if err != nil {
		return store.Start{}, fmt.Errorf("%w for flow %s, key %.80q: %w", ErrInput, r.Flow, r.Key, err)
	}
	key, err := engine.CheckStart(f, r.Key, input)
	if err != nil {
		return store.Start{}, err
	}
	if f.Identity() == flow.Strict && r.Key != "" && key != f.StrictKey(input) {
		return store.Start{}, fmt.Errorf("%w: %.80q: flow %s derives the key of a job from its input (identity: strict): leave the key out",
			ErrKey, key, f.Name())
	}
	start := store.Start{
		Flow: ref, Active: r.Version == "", Trigger: f.Trigger().Name, Key: key, Input: input, Tags: tags, Delay: r.Delay,
	}
	if !r.At.IsZero() {
		start.At = max(0, collation.Micros(r.At.UnixMicro()))
	}
	return start, nil
}

// marshal is the canonical form of an input. JSON that is given as it is has its
// faults named by canonical, and < > & count as the one byte that is stored.
func marshal(v any) ([]byte, error) {
	raw, ok := v.(json.RawMessage)
	if !ok || raw == nil {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return nil, err
		}
		raw = b.Bytes()
	}
	input, err := canonical.Payload(raw)
	if err != nil {
		return nil, err
	}
	if len(input) > MaxInput {
		return nil, fmt.Errorf("the input has %d bytes in its canonical form, the limit is %d", len(input), MaxInput)
	}
	return input, nil
}
