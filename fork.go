package quipu

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// ErrFork says that no job can be forked as asked. Nothing was begun.
var ErrFork = errors.New("refused to fork")

// ForkOption adds to the record of a fork: Who, Reason.
type ForkOption interface{ toFork(f *journal.From) }

func (w Who) toFork(f *journal.From) { w.toResume(f) }

func (r Reason) toFork(f *journal.From) { r.toResume(f) }

// Fork begins a job under the key as that goes on from an entry of the main chain of the job of
// key, numbered from 1 (O12). It has that job's flow version, input and tags, and takes over every
// result that stood there at the entry: of activities, of elements of a list, of the waits of
// durable functions. What had no result by then is done again, as in any other job: its effects
// have keys of their own, its children are other jobs, its timers begin anew. The job of key stays
// as it is, and may be open. Each journal names the other job.
//
// It is refused where effects could not be told apart: if a request was under way at the entry and
// has recorded effects, nobody can say which of them it had done by then. The error names the
// entries before and from which it can be.
//
// Errors: ErrNotFound; ErrFork, which says what to do, also if as has a job already; ErrKey; ErrLogin
// for the login of a client or a worker; or the store's: with ErrUnavailable nothing was begun, with ErrUnknown the job may have been.
func (rt *Runtime) Fork(ctx context.Context, key string, at int64, as string, opts ...ForkOption) (Job, error) {
	from := journal.From{Fork: &journal.Fork{At: at}}
	for _, o := range opts {
		o.toFork(&from)
	}
	if err := rt.covers("to fork a job"); err != nil {
		return Job{}, err
	}
	job, err := rt.Find(ctx, key)
	if err != nil {
		return Job{}, err
	}
	key = job.Key
	v, err := rt.store.Job(ctx, job.ID)
	if err != nil {
		return Job{}, fmt.Errorf("job %.80q: %w", key, err)
	}
	refused := func(err error) (Job, error) { return Job{}, fmt.Errorf("job %.80q: %w: %w", key, ErrFork, err) }
	if err := forkable(v); err != nil {
		return refused(err)
	}
	f, err := rt.flows.Get(ctx, v.Flow)
	if err != nil {
		return Job{}, fmt.Errorf("job %.80q: %w", key, err)
	}
	if f.Identity() == flow.Strict {
		return refused(errors.New("its flow derives the key of a job from its input (identity: strict), so no second job can have that input"))
	}
	c, err := engine.CutAt(ctx, rt.store, job.ID, at)
	if err != nil {
		return Job{}, fmt.Errorf("job %.80q: %w", key, err)
	}
	if err := c.Clean(f); err != nil {
		return refused(err)
	}
	if as == "" {
		return refused(errors.New("give the new job a key of its own"))
	}
	if as, err = rt.checkStart(ctx, f, as, c.Input); err != nil {
		return Job{}, err
	}
	from.Job = job.ID
	in := store.Start{Flow: v.Flow, Trigger: f.Trigger().Name, Key: as, Input: c.Input, Tags: v.Tags, Trace: v.Trace}
	id, err := rt.committer.Fork(ctx, in, from)
	if taken, is := errors.AsType[*store.AlreadyStartedError](err); is {
		return refused(fmt.Errorf("job %.80q has the key %.80q already: take another one", taken.Job, as))
	}
	if err != nil {
		return Job{}, fmt.Errorf("job %.80q: %w", key, err)
	}
	return Job{ID: id, Key: as}, nil
}

// forkable says why a job cannot be forked, or nil.
func forkable(v *store.JobView) error {
	switch {
	case v.Flow.Name == flow.UndoName:
		return errors.New("it runs the compensations of another job")
	case v.State == journal.JobQuarantined:
		return errors.New("it is quarantined: `quipu fsck` says what differs from its journal")
	case v.State == journal.JobExpired:
		return errors.New("it has expired: its journal is being removed")
	case v.From != nil:
		return errors.New("it resumes another job, or is a fork itself: fork the first one (quipu show names it)")
	}
	return nil
}
