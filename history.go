package quipu

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// MaxHistory bounds the entries of a job whose History can be read.
const MaxHistory = 200_000

// History returns the events of a job in the order of time: inputs and outputs of activities,
// attempts, effects, signals, children. Errors: ErrNotFound, ErrTombstone, or one that says that
// the job has over MaxHistory entries.
func (rt *Runtime) History(ctx context.Context, job Job) ([]history.Event, error) {
	job, err := rt.known(ctx, job)
	if err != nil {
		return nil, err
	}
	v, err := rt.store.Job(ctx, job.ID)
	if err != nil {
		return nil, err
	}
	job = Job{ID: v.ID, Key: v.Key}
	// The journal is read to its end before any stored output is: reading it holds a connection.
	var entries []*journal.Entry
	for e, err := range rt.Journal(ctx, job) {
		switch {
		case err != nil:
			return nil, fmt.Errorf("read the history of job %s: %w", nameOf(job), err)
		case len(entries) == MaxHistory:
			return nil, fmt.Errorf("the journal of job %s has over %d entries: read it with quipu export", nameOf(job), MaxHistory)
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("read the history of job %s: %w", nameOf(job), ErrTombstone)
	}
	f, err := rt.definition(ctx, v.Flow)
	if err != nil {
		return nil, err
	}
	t := history.New(f, func(d journal.Digest) ([]byte, error) { return rt.store.Payload(ctx, job.ID, d) })
	for _, e := range entries {
		t.Add(e)
	}
	return t.Events(), nil
}

// definition returns a flow version, or nil if this build cannot read it. Error:
// *store.ChangedError among others.
func (rt *Runtime) definition(ctx context.Context, ref journal.FlowRef) (*flow.Flow, error) {
	text, err := rt.store.Flow(ctx, ref.Name, ref.Version)
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
