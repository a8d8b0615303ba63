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
	one := &call{name: "resume", wants: x.want, decides: x.decide}
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
	st, err := b.job(x.from.Job)
	if err != nil {
		return err
	}
	held := b.loaded.Holders[x.Key]
	if held == nil {
		return notFound(x.from.Job)
	}
	in := b.inception(&x.Start, x.flow)
	last, err := collation.Resume(st, held, &in, x.from, b.mode)
	if err != nil {
		return err
	}
	x.out = b.goOn(st, last, in, x.flow)
	return nil
}
