package main

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// outcome is the result of one job: a report, or why there is none.
type outcome struct {
	source string        // the file; "" for a database
	job    journal.JobID // zero if the input was not read that far
	report *replay.Report
	err    error
}

// proved says that there is nothing wrong with the job. Nothing is wrong with a tombstone.
func (o *outcome) proved() bool { return o.err == nil && !o.report.Violated() }

// tombstone says that the job has expired, and nothing is left that could be proved (J7).
func (o *outcome) tombstone() bool {
	return o.err == nil && !o.report.Violated() && o.report.State == journal.JobExpired
}

// unit verifies one job of a database, or the jobs of one file in their order.
type unit func(ctx context.Context, emit func(outcome))

// Limits of the pipeline: units that wait to be printed, and waiting outcomes of one unit.
const (
	maxAhead   = 64
	maxResults = 16
)

// task is a unit with the channel for its outcomes.
type task struct {
	unit    unit
	results chan outcome
}

// pipeline runs several units at a time and prints their outcomes in the order of the units.
// Memory is bounded: units far ahead of the printed one wait. An error in the list of units
// becomes the last outcome. The returned error is that of print or of the context.
func pipeline(ctx context.Context, units iter.Seq2[unit, error], workers int, print func(outcome) error) error {
	g, ctx := errgroup.WithContext(ctx)
	todo := make(chan task)
	order := make(chan chan outcome, maxAhead)
	g.Go(func() error {
		defer close(todo)
		defer close(order)
		for u, err := range units {
			if err != nil {
				u = func(_ context.Context, emit func(outcome)) { emit(outcome{err: err}) }
			}
			t := task{u, make(chan outcome, maxResults)}
			if !send(ctx, order, t.results) || !send(ctx, todo, t) || err != nil {
				break
			}
		}
		return ctx.Err()
	})
	for range workers {
		g.Go(func() error {
			for t := range todo {
				t.unit(ctx, func(o outcome) { send(ctx, t.results, o) })
				close(t.results)
			}
			return nil
		})
	}
	g.Go(func() error {
		for results := range receive(ctx, order) {
			for o := range receive(ctx, results) {
				if err := print(o); err != nil {
					return err
				}
			}
		}
		return ctx.Err()
	})
	return g.Wait()
}

func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// receive yields values until the channel is closed or the context ends.
func receive[T any](ctx context.Context, from <-chan T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for {
			select {
			case v, ok := <-from:
				if !ok || !yield(v) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
