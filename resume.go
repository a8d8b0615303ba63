package quipu

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// ErrResume says that the job cannot be resumed as asked. Nothing was begun.
var ErrResume = engine.ErrResume

// ErrFork says that no job can be forked as asked. Nothing was begun.
var ErrFork = engine.ErrFork

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
// begins the next generation of the key, on the same flow version and with the same input. Activities before the one that failed
// keep their results, and so do the elements of a list that succeeded. Effects keep their keys,
// also those of the failed activity: a recorded result is reused, an error runs again under the
// next key, and a verifier or a person is asked about an unknown outcome. A function whose
// compensations have run begins anew.
//
// The old job stays as it is, under its ID; the key now names the new one. Each journal names the
// other.
//
// Errors: ErrNotFound; ErrResume, which says what to do; ErrStale if somebody else has resumed
// it; ErrLogin for the login of a client or a worker; or the store's: with ErrUnavailable nothing was begun, with ErrUnknown the job may have
// been.
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
// for the login of a client or a worker; or the store's: with ErrUnavailable nothing was begun, with ErrUnknown the job may have been.
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
