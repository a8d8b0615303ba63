package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// traceLook is the pause between two looks for ended jobs whose trace is to be sent.
const traceLook = time.Second

const (
	// traceAway is how long a collector may refuse one trace after another until it is taken to be
	// away.
	traceAway = 10 * time.Second
	// traceReads is how many journals are read at a time, and traceSpans how many spans are
	// gathered before they are sent.
	traceReads = 4
	traceSpans = 2000
	// traceFirst and traceMost bound the pause after a look that failed.
	traceFirst = time.Second
	traceMost  = 30 * time.Second
)

// traces sends the traces of ended jobs until ctx ends (O2). The mark in the database says what was
// sent, so that nothing is lost with a process or while the collector is away.
func (p *Process) traces(ctx context.Context) error {
	sender := p.Store.Traces()
	for failures := 0; ; {
		began := time.Now()
		err := sender.Send(ctx, func(jobs []journal.JobID) error { return p.sendTraces(ctx, jobs) })
		pause := max(traceLook, time.Since(began))
		if failures++; err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			pause = backoff.Delay(failures-1, traceFirst, traceMost, nil)
			p.cfg.Logger.Warn("the traces of ended jobs are not sent now; it is tried again", "error", err, "in", pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// sendTraces sends the traces of some jobs, some at a time.
func (p *Process) sendTraces(ctx context.Context, jobs []journal.JobID) error {
	for len(jobs) > 0 {
		var trees []*view.Tree
		for spans := 0; len(jobs) > 0 && spans < traceSpans; {
			n := min(len(jobs), traceReads)
			read, err := p.trees(ctx, jobs[:n])
			if err != nil {
				return err
			}
			for _, t := range read {
				trees, spans = append(trees, t), spans+len(t.Spans)
			}
			jobs = jobs[n:]
		}
		if len(trees) == 0 {
			continue
		}
		if err := p.cfg.Observer.Trees(ctx, trees...); err != nil {
			if err := p.sendSingly(ctx, trees, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendSingly sends traces that were refused together one by one. One that alone is refused, while
// the collector takes others, is given up: it must not hold up all that come after it.
func (p *Process) sendSingly(ctx context.Context, trees []*view.Tree, refused error) error {
	var errs []error
	began := time.Now()
	for i, t := range trees {
		if len(trees) == 1 || len(errs) == i && time.Since(began) > traceAway {
			return refused
		}
		if err := p.cfg.Observer.Trees(ctx, t); err != nil {
			errs = append(errs, fmt.Errorf("job %s: %w", t.Job, err))
		}
	}
	if len(errs) == len(trees) || ctx.Err() != nil {
		return refused
	}
	for _, err := range errs {
		p.cfg.Logger.Error("a trace is given up: the collector takes others, but not this one", "error", err)
	}
	return nil
}

// trees makes the trees of those jobs that are sampled. One that cannot be made is logged: to read
// it again would not help. Errors: those of a database that is away.
func (p *Process) trees(ctx context.Context, jobs []journal.JobID) ([]*view.Tree, error) {
	trees := make([]*view.Tree, len(jobs))
	g, ctx := errgroup.WithContext(ctx)
	for i, id := range jobs {
		g.Go(func() (err error) {
			trees[i], err = p.sampled(ctx, id)
			switch {
			case err == nil || errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil:
				return err
			case !errors.Is(err, store.ErrNotFound) && !errors.Is(err, inspect.ErrTombstone):
				p.cfg.Logger.Error("no trace can be made of a job", "job", id.String(), "error", err)
			}
			return nil
		})
	}
	err := g.Wait()
	return slices.DeleteFunc(trees, func(t *view.Tree) bool { return t == nil }), err
}

// sampled makes the tree of a job; nil if it is not sampled.
func (p *Process) sampled(ctx context.Context, id journal.JobID) (*view.Tree, error) {
	v, err := p.Store.Job(ctx, id)
	if err != nil || !p.cfg.Observer.Sampled(id, v.Trace) {
		return nil, err
	}
	return inspect.Trace(ctx, p.Store, v)
}
