package engine

import (
	"context"
	"fmt"
	"iter"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// CutAt reads the journal of a job up to its entry at, and all of it (O12). Errors are those of
// reading: store.ErrNotFound among others.
func CutAt(ctx context.Context, r store.Reader, job journal.JobID, at int64) (c *replay.Cut, err error) {
	err = r.Audit(ctx, job, func(s *store.Stored, records iter.Seq2[journal.Record, error]) error {
		c = replay.NewCut(replay.Header{Space: s.Job.Space, Job: s.Job.ID, Key: s.Job.Key, Generation: s.Job.Generation}, at)
		for r, err := range records {
			if err != nil {
				return err
			}
			if err := c.Apply(r); err != nil {
				return err
			}
		}
		return nil
	})
	return c, err
}

// Fork begins a job under the key of start that takes over what from.Job had at the entry
// from.Fork.At. Start has that job's flow version, trigger, input and tags, and the new key. The
// caller has checked by CutAt that what followed the entry can be told apart. Generation and Head of from
// are set here. Errors: store.ErrNotFound: there is no job, or only its tombstone.
// *store.AlreadyStartedError: a job has the key. store.ErrStale: the job is quarantined.
// store.ErrUnavailable: nothing was begun. store.ErrUnknown: the job may have begun.
func (c *Committer) Fork(ctx context.Context, in store.Start, from journal.From) (journal.JobID, error) {
	compiled, err := c.flows.Get(ctx, in.Flow)
	if err != nil {
		return journal.JobID{}, err
	}
	x := &fork{Start: in, from: from, flow: compiled}
	one := &call{name: "fork", want: x.want, decide: x.decide}
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
	st := b.loaded.States[x.from.Job]
	switch {
	case st == nil && b.loaded.Busy[x.from.Job]:
		return store.ErrBusy
	case st == nil || st.Job.State == journal.JobExpired:
		return fmt.Errorf("%w: job %s", store.ErrNotFound, x.from.Job)
	case st.Job.State == journal.JobQuarantined:
		return fmt.Errorf("%w: the job is quarantined", store.ErrStale)
	}
	held := b.keyHolder(x.Key)
	if held != nil && held.State != journal.JobExpired {
		x.out = taken(&x.Start, held)
		return nil
	}
	in := x.Inception(b.space, b.loaded.Now)
	in.Publish, in.Keep, in.Generation = b.sends, x.flow.Expire(), 1
	if held != nil {
		in.Generation = max(held.Generation, held.Floor) + 1
	}
	id := collation.NewJobID(in.Space, in.Key, in.Generation)
	forked := collation.Forked(st, id, x.from.Who, x.from.Reason, b.mode)
	b.plans = append(b.plans, store.Chain(&st.Job, forked))
	st.Apply(forked)
	from, cut := x.from, *x.from.Fork
	from.Generation, from.Head = st.Job.Generation, st.Job.Head
	cut.Job, cut.Generation = from.Job, from.Generation
	from.Fork, in.From = &cut, &from
	x.out = store.Started{Job: id}
	if first := b.begin(collation.Incept(in, b.mode), x.flow); first != nil {
		b.folded = append(b.folded, first)
	}
	return nil
}
