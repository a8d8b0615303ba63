package engine

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Resume begins the next generation of the key of a closed job. Start has the job's flow
// version, trigger, key, input and tags. From names the job and says what is done again;
// Generation, Head and Root are set here. Errors: store.ErrNotFound: there is no job, or only
// its tombstone. store.ErrStale: it neither failed nor was interrupted, or another job has
// resumed it. store.ErrUnavailable: nothing was begun. store.ErrUnknown: the job may have
// begun.
func (c *Committer) Resume(ctx context.Context, in store.Start, from journal.From) (journal.JobID, error) {
	compiled, err := c.flows.Get(ctx, in.Flow)
	if err != nil {
		return journal.JobID{}, err
	}
	x := &resume{Start: in, from: from, flow: compiled}
	one := &call{name: "resume", want: x.want, decide: x.decide}
	if c.do(ctx, one); one.err != nil {
		return journal.JobID{}, fmt.Errorf("resume: %w", one.err)
	}
	return x.out, nil
}

// resume is the inception of a job that resumes another. It reads that job, locked, and who has
// the key. It writes the last entry of that job, and the new job with its first steps.
type resume struct {
	store.Start
	from journal.From
	flow *flow.Flow
	out  journal.JobID
}

func (x *resume) want() []store.Want {
	return []store.Want{{Job: x.from.Job}, {Key: x.Key}}
}

func (x *resume) decide(b *batch) error {
	st, held := b.loaded.States[x.from.Job], b.loaded.Holders[x.Key]
	switch {
	case st == nil && b.loaded.Busy[x.from.Job]:
		return store.ErrBusy
	case st == nil || held == nil:
		return fmt.Errorf("%w: job %s", store.ErrNotFound, x.from.Job)
	case held.ID != x.from.Job:
		return fmt.Errorf("%w: generation %d of the key is there", store.ErrStale, held.Generation)
	case st.Job.State != journal.JobFailed && st.Job.State != journal.JobInterrupted:
		return fmt.Errorf("%w: the job is %s", store.ErrStale, st.Job.State)
	}
	in := x.Inception(b.space, b.loaded.Now)
	in.Publish, in.Keep, in.Generation = b.sends, x.flow.Expire(), max(held.Generation, held.Floor)+1
	next := collation.NewJobID(in.Space, in.Key, in.Generation)
	last := collation.Resumed(st, next, x.from.Who, x.from.Reason, b.mode)
	b.plans = append(b.plans, store.Chain(&st.Job, last))
	st.Apply(last)
	from := x.from
	from.Generation, from.Head = st.Job.Generation, st.Job.Head
	from.Root, from.RootGeneration = st.Job.Root()
	if was := st.Job.From; was != nil {
		from.Fork = was.Fork
	}
	in.From = &from
	x.out = next
	if first := b.begin(collation.Incept(in, b.mode), x.flow); first != nil {
		b.folded = append(b.folded, first)
	}
	return nil
}
