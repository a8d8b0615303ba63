package quipu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/trace"
)

// Trace returns the tree of spans of a job, from its journal alone (O2). What has ended of it is the
// same in every later tree. Errors are those of History.
func (rt *Runtime) Trace(ctx context.Context, job Job) (*trace.Tree, error) {
	job, err := rt.known(ctx, job)
	if err != nil {
		return nil, err
	}
	var entries []*journal.Entry
	for e, err := range rt.Journal(ctx, job) {
		switch {
		case err != nil:
			return nil, fmt.Errorf("read the journal of job %s: %w", nameOf(job), err)
		case len(entries) == MaxHistory:
			return nil, fmt.Errorf("the journal of job %s has over %d entries: no trace is made of it", nameOf(job), MaxHistory)
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("read the journal of job %s: %w", nameOf(job), ErrTombstone)
	}
	// Other jobs are read when the journal has been: reading it holds a connection.
	var failed error
	b := trace.New(func(other journal.JobID) string {
		v, err := rt.store.Job(ctx, other)
		if err != nil {
			if !errors.Is(err, ErrNotFound) {
				failed = err
			}
			return ""
		}
		return v.Trace
	})
	for _, e := range entries {
		b.Add(e)
	}
	if failed != nil {
		return nil, fmt.Errorf("read a job to which job %s is linked: %w", nameOf(job), failed)
	}
	return b.Tree(), nil
}

// traceLook is the pause between two looks for ended jobs whose trace is to be sent.
const traceLook = time.Second

// traceAway is how long a collector may refuse one trace after another until it is taken to be away.
const traceAway = 10 * time.Second

// traces sends the traces of ended jobs until ctx ends (O2). The mark in the database says what was
// sent, so that nothing is lost with a process or while the collector is away.
func (rt *Runtime) traces(ctx context.Context) error {
	sender := rt.store.Traces()
	for {
		began := time.Now()
		if err := sender.Send(ctx, func(jobs []journal.JobID) error { return rt.sendTraces(ctx, jobs) }); err != nil && ctx.Err() == nil {
			rt.cfg.Logger.Warn("the traces of ended jobs are not sent now; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(traceLook, 4*time.Since(began))):
		}
	}
}

// sendTraces sends the traces of some jobs. One that alone is refused, while the collector takes
// others, is given up: it must not hold up all that come after it.
func (rt *Runtime) sendTraces(ctx context.Context, jobs []journal.JobID) error {
	trees, err := rt.trees(ctx, jobs)
	if err != nil || len(trees) == 0 {
		return err
	}
	refused := rt.cfg.Observer.Trees(ctx, trees...)
	if refused == nil || len(trees) == 1 {
		return refused
	}
	var errs []error
	began := time.Now()
	for i, t := range trees {
		if err := rt.cfg.Observer.Trees(ctx, t); err != nil {
			errs = append(errs, fmt.Errorf("job %s: %w", t.Job, err))
		}
		if len(errs) > i && time.Since(began) > traceAway {
			break
		}
	}
	if len(errs) == len(trees) || time.Since(began) > traceAway || ctx.Err() != nil {
		return refused
	}
	for _, err := range errs {
		rt.cfg.Logger.Error("a trace is given up: the collector takes others, but not this one", "error", err)
	}
	return nil
}

// trees makes the trees of sampled jobs. One that cannot be made is logged: to read it again would
// not help. Errors: those of a database that is away.
func (rt *Runtime) trees(ctx context.Context, jobs []journal.JobID) (trees []*trace.Tree, err error) {
	for _, id := range jobs {
		v, err := rt.store.Job(ctx, id)
		if err == nil && !rt.cfg.Observer.Sampled(id, v.Trace) {
			continue
		}
		var t *trace.Tree
		if err == nil {
			t, err = rt.Trace(ctx, Job{ID: id, Key: v.Key})
		}
		switch {
		case err == nil:
			trees = append(trees, t)
		case errors.Is(err, ErrUnavailable) || ctx.Err() != nil:
			return nil, err
		case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrTombstone):
			rt.cfg.Logger.Error("no trace can be made of a job", "job", id.String(), "error", err)
		}
	}
	return trees, nil
}
