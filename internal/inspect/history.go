package inspect

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// MaxHistory bounds the entries of a job whose history can be read.
const MaxHistory = 200_000

// History returns the events of a job in the order of time. Errors: store.ErrNotFound, ErrTombstone,
// or one that says that the job has over MaxHistory entries.
func History(ctx context.Context, r Reader, job journal.JobID) ([]history.Event, error) {
	v, err := r.Job(ctx, job)
	if err != nil {
		return nil, err
	}
	all, err := entries(ctx, r, job, MaxHistory, "read it with quipu export")
	if err != nil {
		return nil, fmt.Errorf("read the history of job %q: %w", v.Key, err)
	}
	f, err := definition(ctx, r, v.Flow)
	if err != nil {
		return nil, err
	}
	t := history.New(f, func(d journal.Digest) ([]byte, error) { return r.Payload(ctx, job, d) })
	for _, e := range all {
		t.Add(e)
	}
	return t.Events(), nil
}

// definition returns a flow version, or nil if this build cannot read it. Error:
// *store.ChangedError among others.
func definition(ctx context.Context, r Reader, ref journal.FlowRef) (*flow.Flow, error) {
	text, err := r.Flow(ctx, ref.Name, ref.Version)
	if err != nil {
		return nil, err
	}
	if err := store.SameFlow(ref, text); err != nil {
		return nil, err
	}
	f, err := flow.FromCanonical(text)
	if err != nil {
		return nil, nil
	}
	return f, nil
}
