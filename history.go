package quipu

import (
	"context"
	"fmt"
	"iter"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/history"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// MaxHistory is how many entries a job may have whose history is told.
const MaxHistory = 200_000

// History tells what happened in a job, in the order of time: what went in to each
// activity and came out of it, attempts, effects, signals, children. The error is
// ErrNotFound, ErrTombstone, or says that the job has over MaxHistory entries.
func (rt *Runtime) History(ctx context.Context, job Job) ([]history.Event, error) {
	job, err := rt.known(ctx, job)
	if err != nil {
		return nil, err
	}
	f, err := rt.flowOf(ctx, job)
	if err != nil {
		return nil, err
	}
	t := history.New(f, func(d journal.Digest) ([]byte, error) { return rt.store.Payload(ctx, job.ID, d) })
	err = rt.store.Audit(ctx, job.ID, func(stored *store.Stored, records iter.Seq2[journal.Record, error]) error {
		if stored.Job.State == journal.JobExpired {
			return ErrTombstone
		}
		n := 0
		for r, err := range records {
			if err != nil {
				return err
			}
			e, err := journal.Decode(r)
			if err != nil {
				return err
			}
			if n++; n > MaxHistory {
				return fmt.Errorf("its journal has over %d entries: export it", MaxHistory)
			}
			t.Add(e)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the history of job %s: %w", nameOf(job), err)
	}
	return t.Events(), nil
}

// flowOf is the version that the job runs; nil if this build cannot read it.
func (rt *Runtime) flowOf(ctx context.Context, job Job) (*flow.Flow, error) {
	v, err := rt.store.Job(ctx, job.ID)
	if err != nil {
		return nil, err
	}
	text, err := rt.store.Flow(ctx, v.Flow.Name, v.Flow.Version)
	if err != nil {
		return nil, err
	}
	f, err := flow.FromCanonical(text)
	if err != nil {
		return nil, nil
	}
	return f, nil
}
