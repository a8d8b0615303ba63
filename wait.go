package quipu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// JobError says that a job ended without completing: its state, and the code and cause of its
// error.
type JobError struct {
	Job   Job
	State journal.JobState
	Code  int
	Cause *journal.Failure
}

// Error names the job and its error.
func (e *JobError) Error() string {
	message := "no message"
	if e.Cause != nil {
		message = e.Cause.Message
	}
	return fmt.Sprintf("job %q %s with code %d: %s", e.Job.Key, e.State, e.Code, message)
}

// quarantined is the cause that Wait reports for a quarantined job, which never ends by itself
// (J1).
var quarantined = &journal.Failure{
	Class: "quarantined", Message: "its stored state is against the laws: verify its journal (journal-verify --job)",
}

// ParkedError says that a job waits for a person: it has these open dead letters, and perhaps
// nothing else goes on in it. Operator.Decide answers them.
type ParkedError struct {
	Job         Job
	DeadLetters []DeadLetter // newest first
}

// Error names the dead letters and says what to do.
func (e *ParkedError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "job %q waits for a person", e.Job.Key)
	for i, l := range e.DeadLetters {
		if i == maxLettersNamed {
			fmt.Fprintf(&text, "; and %d more", len(e.DeadLetters)-i)
			break
		}
		fmt.Fprintf(&text, "; dead letter %d of %s (%s): %s", l.ID, l.Activity, l.Reason, l.Message)
	}
	fmt.Fprintf(&text, "; `quipu why %s` says what can be done", e.Job.Key)
	return text.String()
}

// maxLettersNamed bounds the dead letters that the text of a ParkedError names.
const maxLettersNamed = 3

// WaitOption changes a Wait or a Call: UntilParked.
type WaitOption interface{ toWait(o *waitOptions) }

type waitOptions struct{ untilParked bool }

// UntilParked makes a Wait return *ParkedError when the job waits for a person. By default it
// goes on waiting, since somebody may answer. Wait looks for it once in each Config.WaitLook.
type UntilParked bool

func (u UntilParked) toWait(o *waitOptions) { o.untilParked = bool(u) }

// Wait waits for the job's end and returns its output, or *JobError. The engine of this process
// wakes it, or with NATS that of another process; a look every Config.WaitLook finds ends that
// nobody announced. It also waits while the database is away. It returns ErrClosed if the Runtime
// is closed meanwhile. A job that StartTx has asked for (Job.Asked) is waited for before it begins,
// too: ErrRefused, if an engine did not begin it. When ctx ends first, it returns the cause of that. At a deadline the error
// names the command that says what the job waits for, or has *ParkedError beside it where that
// is a person.
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
	e := &ParkedError{Job: job, DeadLetters: make([]DeadLetter, len(views))}
	for i := range views {
		e.DeadLetters[i] = deadLetter(&views[i])
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
