package quipu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/view"
)

// quarantined is the cause that Wait reports for a quarantined job, which never ends by itself
// (J1).
var quarantined = &journal.Failure{
	Class: "quarantined", Message: "its stored state is against the laws: verify its journal (journal-verify --job)",
}

// WaitOption changes a Wait or a Call: UntilParked.
type WaitOption interface{ toWait(o *waitOptions) }

type waitOptions struct{ untilParked bool }

// UntilParked makes a Wait return *ParkedError when the job waits for a person. By default it
// goes on waiting, since somebody may answer. Wait looks for it once in each Config.WaitLook.
type UntilParked bool

func (u UntilParked) toWait(o *waitOptions) { o.untilParked = bool(u) }

func (u UntilParked) toCall(c *callOptions) { c.wait = append(c.wait, u) }

// Wait waits for the job's end and returns its output, or *JobError. The engine of this process
// wakes it, or with NATS that of another process; a look every Config.WaitLook finds ends that
// nobody announced. It also waits while the database is away. It returns ErrClosed if the Runtime
// is closed meanwhile. A job that StartTx has asked for (Job.Asked) is waited for before it begins,
// too: ErrRefused, if an engine did not begin it. When ctx ends first, it returns the cause of
// that. At a deadline the error names the command that says what the job waits for, or has
// *ParkedError beside it where that is a person.
func (rt *Runtime) Wait(ctx context.Context, job Job, opts ...WaitOption) (json.RawMessage, error) {
	var options waitOptions
	for _, o := range opts {
		o.toWait(&options)
	}
	job, err := rt.begun(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("wait: %w", err)
	}
	o, err := rt.proc.Waiters.Wait(ctx, job.ID, options.untilParked)
	rt.cfg.Observer.Count(observer.MetricWaits, 1, "outcome", waitOutcome(ctx, err))
	if parked, is := errors.AsType[*engine.ParkedError](err); is {
		return nil, parkedBy(job, parked.DeadLetters)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, rt.late(ctx, job, err)
	case err != nil:
		return nil, fmt.Errorf("wait for job %q: %w", job.Key, err)
	case o.State == journal.JobQuarantined:
		return nil, &JobError{Job: job, State: o.State, Cause: quarantined}
	case o.State != journal.JobCompleted:
		return nil, &JobError{Job: Job{ID: job.ID, Key: o.Key}, State: o.State, Code: o.Code, Cause: o.Error}
	}
	return o.Output, nil
}

// waitOutcome names how a wait ended, for a metric.
func waitOutcome(ctx context.Context, err error) string {
	switch _, parked := errors.AsType[*engine.ParkedError](err); {
	case err == nil:
		return "ended"
	case parked:
		return "parked"
	case ctx.Err() != nil:
		return "left"
	}
	return "failed"
}

// lateLook bounds the look for why a job has not ended in time.
const lateLook = time.Second

// late is the error of a wait whose context has ended. At a deadline it adds *ParkedError where
// the job waits for a person, or else says who knows what it waits for.
func (rt *Runtime) late(ctx context.Context, job Job, err error) error {
	err = fmt.Errorf("wait for job %q: %w", job.Key, err)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err // the caller gave up itself and knows why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateLook)
	defer cancel()
	if letters, failed := rt.proc.Waiters.Parked(ctx, job.ID); failed == nil && len(letters) > 0 {
		return fmt.Errorf("%w: %w", err, parkedBy(job, letters))
	}
	return fmt.Errorf("%w: the job goes on; `quipu why %s` says what it waits for", err, job.name())
}

// name is what a command takes for the job: its key, or its ID where only that is known.
func (j Job) name() string {
	if j.Key == "" {
		return j.ID.String()
	}
	return j.Key
}

func parkedBy(job Job, views []store.DeadView) *ParkedError {
	e := &ParkedError{Job: job, DeadLetters: make([]view.DeadLetter, len(views))}
	for i := range views {
		e.DeadLetters[i] = inspect.LetterOf(&views[i])
	}
	return e
}

// WaitAs is Wait with the output decoded as a T.
func WaitAs[T any](ctx context.Context, rt *Runtime, job Job, opts ...WaitOption) (T, error) {
	out, err := rt.Wait(ctx, job, opts...)
	return as[T](out, err, "output of job "+job.Key)
}

// CallAs is Call with the result decoded as a T.
func CallAs[T any](ctx context.Context, rt *Runtime, topic, key string, in any, opts ...WaitOption) (T, error) {
	out, err := rt.Call(ctx, topic, key, in, opts...)
	return as[T](out, err, "result of call "+key)
}

// as decodes JSON as a T.
func as[T any](text json.RawMessage, err error, what string) (T, error) {
	var v T
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return v, fmt.Errorf("%s is no %T: %w", what, v, err)
	}
	return v, nil
}

// Call runs one handler and waits for its result: a direct call with a record (E14). It starts a
// job of the built-in flow of the topic (flow.Call), which is deployed at first use. That job has
// a journal, three attempts, effects and durable pauses, and appears in lists like any other.
//
// key is the key of the job, unique in the space. A repeated call with the same key waits for the
// existing job or returns its result, whoever made it and however it ended. in is anything that
// encoding/json marshals; json.RawMessage is taken as it is. The job is kept for the space's
// default (ExpireDefault); after that a call with its key runs the handler again.
//
// Errors: *JobError where the handler failed or its attempts are exhausted; an error that wraps
// *ConflictError where the key has a job of another topic, flow or input; ErrKey; ErrInput, also
// for a malformed topic; with UntilParked *ParkedError where a person has to decide (otherwise
// the call goes on waiting). After ErrUnknown, or when ctx ends first, as when nobody serves the
// topic, the job may have begun; the call may be repeated.
func (rt *Runtime) Call(ctx context.Context, topic, key string, in any, opts ...WaitOption) (json.RawMessage, error) {
	job, err := rt.call(ctx, topic, key, in)
	if err != nil {
		return nil, fmt.Errorf("call %.130s: %w", topic, err)
	}
	return rt.Wait(ctx, job, opts...)
}

// call returns the job of a call, which it begins if need be.
func (rt *Runtime) call(ctx context.Context, topic, key string, in any) (Job, error) {
	ref, f, err := rt.flows.Resolve(ctx, flow.CallName, topic)
	if err != nil {
		if _, malformed := flow.Call(topic); malformed != nil {
			err = fmt.Errorf("%w: a topic is parts of a-z, 0-9, _ and - joined by dots, up to %d bytes", ErrInput, flow.MaxTopic)
		}
		return Job{}, err
	}
	input, err := marshal(in)
	if err != nil {
		return Job{}, fmt.Errorf("%w, key %.80q: %w", ErrInput, rt.proc.Kept(key), err)
	}
	if key, err = rt.checkStart(ctx, f, key, input); err != nil {
		return Job{}, err
	}
	begun := rt.proc.Begin(ctx, []store.Start{{Flow: ref, Trigger: f.Trigger().Name, Key: key, Input: input}})
	if there, is := errors.AsType[*store.AlreadyStartedError](begun[0].Err); is {
		there.SameFlow = there.SameFlow && there.Flow.Version == topic
	}
	return started(key, begun[0])
}

// TypedFlow is a flow with the Go types of its input and its output. It is a name with types and
// knows no runtime: keep one in a package variable.
type TypedFlow[In, Out any] struct{ name string }

// FlowOf returns the flow with that name. The types are the caller's promise: the flow's own
// schema decides whether it takes an In (ErrInput), and Wait whether its output is an Out.
func FlowOf[In, Out any](name string) TypedFlow[In, Out] { return TypedFlow[In, Out]{name} }

// Start is Runtime.Start with an input of the flow's type.
func (f TypedFlow[In, Out]) Start(
	ctx context.Context, rt *Runtime, key string, in In, opts ...StartOption,
) (Job, error) {
	return rt.Start(ctx, f.name, key, in, opts...)
}

// Wait is WaitAs with the flow's output. It does not look whether the job is one of the flow.
func (f TypedFlow[In, Out]) Wait(ctx context.Context, rt *Runtime, job Job, opts ...WaitOption) (Out, error) {
	return WaitAs[Out](ctx, rt, job, opts...)
}

// CallOption changes the start or the wait of a TypedFlow.Call: Version, Delay, At, Tags, Who,
// UntilParked.
type CallOption interface{ toCall(c *callOptions) }

type callOptions struct {
	start []StartOption
	wait  []WaitOption
}

// Call starts the job and waits for it: a call that is repeated with the same key and input gets
// the output of the same job. Errors are those of Start and of Wait.
func (f TypedFlow[In, Out]) Call(ctx context.Context, rt *Runtime, key string, in In, opts ...CallOption) (Out, error) {
	var o callOptions
	for _, opt := range opts {
		opt.toCall(&o)
	}
	job, err := f.Start(ctx, rt, key, in, o.start...)
	if err != nil {
		var none Out
		return none, err
	}
	return f.Wait(ctx, rt, job, o.wait...)
}
