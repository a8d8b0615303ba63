package quipu

import (
	"cmp"
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
		Job: job, Flow: there.Flow.Name, Version: there.Flow.Version, SameFlow: there.SameFlow,
		SameInput: there.SameInput,
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
		Flow: ref, Active: r.Version == "", Trigger: f.Trigger().Name, Key: key, Input: input, Tags: tags,
		Delay: r.Delay, Who: wire.CutText(r.Who),
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

// StartTx is Start inside the caller's own transaction: the job begins if and when that commits
// (E17). Nothing has to be published: the commit announces the job to the engines, which pick it
// up at once. If the announcement is lost they find it within about a second.
//
// In the body of a DoTx the job begins with the effect or not at all. A later run of the handler
// finds the effect done and begins nothing, so there is exactly one job and no key to remember.
//
// StartTx waits for another transaction that is starting the same key. After an error the
// transaction stays usable, as if the call had not been made. StartTx does not retry: after
// ErrUnavailable the caller repeats the whole transaction (a DoTx does so itself if its body
// returns the error). A transaction that is closed, nil, or aborted by an earlier error gives
// ErrRejected.
//
// With a database login of the role client an engine begins the job after the commit, and the Job
// that is returned has no ID, but for one that has the key already. The engine refuses it if the key
// has another job by then, or the flow or its schema has changed. Nobody is there to be told, so
// keep the Job: Wait, Job and the like say ErrRefused with the reason, for 30 days. The engine logs
// it and counts it (quipu_starts_asked_total). A worker's login has no right to StartTx (S8).
func (rt *Runtime) StartTx(
	ctx context.Context, tx Transaction, flowName, key string, input any, opts ...StartOption,
) (Job, error) {
	r := StartRequest{Flow: flowName, Key: key, Input: input}
	for _, o := range opts {
		o.toStart(&r)
	}
	begin := rt.committer.StartTx
	if !rt.proc.Decides() {
		begin = rt.committer.AskTx // a login without the keys makes no inception (S8)
	}
	for attempt := 0; ; attempt++ {
		start, err := rt.prepare(ctx, r)
		if err != nil {
			return Job{}, err
		}
		start.Trace = rt.cfg.Observer.Trace(ctx)
		begun, err := begin(ctx, tx, start)
		switch {
		case errors.Is(err, engine.ErrFlowMoved) && attempt < maxFlowMoves:
			continue
		case err != nil:
			return Job{}, fmt.Errorf("start job %.80q in a transaction: %w", start.Key, err)
		}
		return started(start.Key, begun)
	}
}

// StartOption changes a start: Version, Delay, At, Tags, Who.
type StartOption interface{ toStart(r *StartRequest) }

// Version is the flow version that a job starts on, instead of the active one.
type Version string

func (v Version) toStart(r *StartRequest) { r.Version = string(v) }

func (v Version) toCall(c *callOptions) { c.start = append(c.start, v) }

// Delay puts off the start of a job, counted from its inception by the database's clock; 0 to
// MaxDelay.
type Delay time.Duration

func (d Delay) toStart(r *StartRequest) { r.Delay = time.Duration(d) }

func (d Delay) toCall(c *callOptions) { c.start = append(c.start, d) }

// At is the time when a job starts, by the database's clock, at most MaxDelay from now.
type At time.Time

func (a At) toStart(r *StartRequest) { r.At = time.Time(a) }

func (a At) toCall(c *callOptions) { c.start = append(c.start, a) }

// Tags are labels by which Jobs finds a job: at most MaxTags, each of 1 to MaxTag bytes.
type Tags []string

func (t Tags) toStart(r *StartRequest) { r.Tags = append(r.Tags, t...) }

func (t Tags) toCall(c *callOptions) { c.start = append(c.start, t) }

// Who is the person who decides or asks, for the journal. It is an option of Resume, Start, Signal
// and Interrupt.
type Who string

func (w Who) toStart(r *StartRequest) { r.Who = string(w) }

func (w Who) toCall(c *callOptions) { c.start = append(c.start, w) }

func (w Who) toInterrupt(o *interruptOptions) error {
	o.order.Who = wire.CutText(string(w))
	return nil
}

func (w Who) toSignal(o *signalOptions) error {
	o.who = wire.CutText(string(w))
	return nil
}

func (w Who) toResume(f *journal.From) { f.Who = wire.CutText(string(w)) }

func (w Who) toFork(f *journal.From) { w.toResume(f) }

// ResumeOption changes how a job is resumed: From, Who, Reason.
type ResumeOption interface{ toResume(f *journal.From) }

// From names the activity to resume from. It is done again, with all that follows from it and in
// a loop with every pass, whether it had succeeded or not. The default is the activity that
// failed.
type From string

func (a From) toResume(f *journal.From) { f.Activity = string(a) }

// ForkOption adds to the record of a fork: Who, Reason.
type ForkOption interface{ toFork(f *journal.From) }

// Resume continues a job that has failed or was interrupted. A job with an ID is that one: ErrStale if
// it is not the last that has had its key. A job with only a key is that which has the key now. Resume
// begins the next generation of the key, on the same flow version and with the same input.
// Activities before the one that failed keep their results, and so do the elements of a list that
// succeeded. Effects keep their keys, also those of the failed activity: a recorded result is
// reused, an error runs again under the next key, and a verifier or a person is asked about an
// unknown outcome. A function whose compensations have run begins anew.
//
// The old job stays as it is, under its ID; the key now names the new one. Each journal names the
// other.
//
// Errors: ErrNotFound; ErrResume, which says what to do; ErrStale if somebody else has resumed
// it; ErrLogin for the login of a client or a worker; or the store's: with ErrUnavailable nothing
// was begun, with ErrUnknown the job may have been.
func (rt *Runtime) Resume(ctx context.Context, job Job, opts ...ResumeOption) (Job, error) {
	from := journal.From{}
	for _, o := range opts {
		o.toResume(&from)
	}
	if err := rt.proc.Covers("to resume a job"); err != nil {
		return Job{}, err
	}
	job, err := rt.known(ctx, job)
	if err != nil {
		return Job{}, err
	}
	in, err := engine.PlanResume(ctx, rt.store, rt.flows, job.ID, &from)
	if job.Key = cmp.Or(in.Key, job.Key); err == nil {
		job.ID, err = rt.committer.Resume(ctx, in, from)
	}
	if err != nil {
		return Job{}, fmt.Errorf("job %.80q: %w", job.name(), err)
	}
	return job, nil
}

// Fork begins a job under the key as that goes on from an entry of the main chain of the job,
// numbered from 1 (O12). It has that job's flow version, input and tags, and takes over every
// result that stood there at the entry: of activities, of elements of a list, of the waits of
// durable functions. What had no result by then is done again, as in any other job: its effects
// have keys of their own, its children are other jobs, its timers begin anew. The first job stays
// as it is, and may be open. Each journal names the other job.
//
// It is refused where effects could not be told apart: if a request was under way at the entry and
// has recorded effects, nobody can say which of them it had done by then. The error names the
// entries before and from which it can be.
//
// Errors: ErrNotFound; ErrFork, which says what to do, also if as has a job already; ErrKey; ErrLogin
// for the login of a client or a worker; or the store's: with ErrUnavailable nothing was begun, with
// ErrUnknown the job may have been.
func (rt *Runtime) Fork(ctx context.Context, job Job, at int64, as string, opts ...ForkOption) (Job, error) {
	from := journal.From{Fork: &journal.Fork{At: at}}
	for _, o := range opts {
		o.toFork(&from)
	}
	if err := rt.proc.Covers("to fork a job"); err != nil {
		return Job{}, err
	}
	job, err := rt.known(ctx, job)
	if err != nil {
		return Job{}, err
	}
	f, in, err := engine.PlanFork(ctx, rt.store, rt.flows, job.ID, &from)
	job.Key = cmp.Or(in.Key, job.Key)
	if err == nil && as == "" {
		err = fmt.Errorf("%w: give the new job a key of its own", ErrFork)
	}
	if err != nil {
		return Job{}, fmt.Errorf("job %.80q: %w", job.name(), err)
	}
	if in.Key, err = rt.checkStart(ctx, f, as, in.Input); err != nil {
		return Job{}, err
	}
	id, err := rt.committer.Fork(ctx, in, from)
	if taken, is := errors.AsType[*store.AlreadyStartedError](err); is {
		err = fmt.Errorf("%w: job %.80q has the key %.80q already: take another one", ErrFork, taken.Job, in.Key)
	}
	if err != nil {
		return Job{}, fmt.Errorf("job %.80q: %w", job.name(), err)
	}
	return Job{ID: id, Key: in.Key}, nil
}
