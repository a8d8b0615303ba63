package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// PlanFork reads the job that is to be forked at an entry of its main chain, and completes from.
// The start has the flow version, the input and the tags of that job, and its key, which the caller
// replaces. Errors: ErrFork, which says what to do, store.ErrNotFound, or the store's.
func PlanFork(ctx context.Context, r Reader, flows *Flows, id journal.JobID, from *journal.From) (f *flow.Flow,
	in store.Start, err error,
) {
	v, err := r.Job(ctx, id)
	if err != nil {
		return nil, in, err
	}
	in = store.Start{Flow: v.Flow, Key: v.Key, Tags: v.Tags, Trace: v.Trace}
	if err := forkable(v); err != nil {
		return nil, in, fmt.Errorf("%w: %w", ErrFork, err)
	}
	if f, err = flows.Get(ctx, v.Flow); err != nil {
		return nil, in, err
	}
	if f.Identity() == flow.Strict {
		return nil, in, fmt.Errorf("%w: its flow derives the key of a job from its input (identity: strict), so no second job can have that input", ErrFork)
	}
	c, err := inspect.CutAt(ctx, r, id, from.Fork.At)
	if err != nil {
		return nil, in, err
	}
	if err := c.Clean(f); err != nil {
		return nil, in, fmt.Errorf("%w: %w", ErrFork, err)
	}
	from.Job, in.Trigger, in.Input = id, f.Trigger().Name, c.Input
	return f, in, nil
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

// Fork begins a job under the key of start that takes over what from.Job had at the entry
// from.Fork.At. Start has that job's flow version, trigger, input and tags, and the new key. The
// caller has checked by PlanFork that what followed the entry can be told apart. Generation and Head of from
// are set here. Errors: store.ErrNotFound: there is no job, or only its tombstone.
// *store.AlreadyStartedError: a job has the key. store.ErrStale: the job is quarantined.
// store.ErrUnavailable: nothing was begun. store.ErrUnknown: the job may have begun.
func (c *Committer) Fork(ctx context.Context, in store.Start, from journal.From) (journal.JobID, error) {
	compiled, err := c.flows.Get(ctx, in.Flow)
	if err != nil {
		return journal.JobID{}, err
	}
	x := &fork{Start: in, from: from, flow: compiled}
	one := &call{name: "fork", wants: x.want, decides: x.decide}
	if c.do(ctx, one); one.err != nil {
		return journal.JobID{}, fmt.Errorf("fork: %w", one.err)
	}
	return x.out.Job, x.out.Err
}

// fork is the inception of a job that goes on from an entry of another. It reads that job, locked,
// and who has the new key. It writes an entry of that job, and the new job with its first steps.
type fork struct {
	store.Start
	from journal.From
	flow *flow.Flow
	out  store.Started
}

func (x *fork) want() []store.Want {
	return []store.Want{{Job: x.from.Job}, {Key: x.Key}}
}

func (x *fork) decide(b *batch) error {
	st, err := b.job(x.from.Job)
	switch {
	case err != nil:
		return err
	case st.Job.State == journal.JobExpired:
		return notFound(x.from.Job)
	}
	held := b.keyHolder(x.Key)
	if held != nil && held.State != journal.JobExpired {
		x.out = taken(&x.Start, held)
		return nil
	}
	in := b.inception(&x.Start, x.flow)
	cut, err := collation.Fork(st, held, &in, x.from, b.mode)
	if err != nil {
		return err
	}
	x.out = store.Started{Job: b.goOn(st, cut, in, x.flow)}
	return nil
}

// goOn adds the inception of a job that goes on from another to the batch, after the plan by which
// that one names it.
func (b *batch) goOn(st *collation.State, p *collation.Plan, in collation.Inception, f *flow.Flow) journal.JobID {
	b.apply(st, p)
	in.GoOn(st)
	first := collation.Incept(in, b.mode)
	b.begin(first, f)
	return first.Job
}
