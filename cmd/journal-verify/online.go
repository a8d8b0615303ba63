package main

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// reader is what the command reads of a database.
type reader interface {
	store.Reader
	FindJob(ctx context.Context, key string) (journal.JobID, error)
	Counts(ctx context.Context) (map[journal.JobState]int64, error)
	SpaceChain(ctx context.Context) (*replay.SpaceChain, error) // that of the space itself (S7)
	Close()
}

// findJobs returns the ids of keys and ids; nil means all jobs.
func findJobs(ctx context.Context, r reader, names []string) ([]journal.JobID, error) {
	var ids []journal.JobID
	for _, name := range names {
		id, err := journal.ParseJobID(name)
		if err != nil {
			if id, err = r.FindJob(ctx, name); err != nil {
				return nil, fmt.Errorf("find job %q: %w", name, err)
			}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// countJobs returns the number of jobs, for the progress bar only.
func countJobs(ctx context.Context, r reader, ids []journal.JobID) total {
	if ids != nil {
		return total{jobs: int64(len(ids))}
	}
	counts, err := r.Counts(ctx)
	if err != nil {
		return total{} // the bar works without it
	}
	var of total
	for _, n := range counts {
		of.jobs += n
	}
	return of
}

// storeUnits makes one unit of each job. A requested job that does not exist is an error.
func storeUnits(ctx context.Context, r reader, ids []journal.JobID) iter.Seq2[unit, error] {
	return func(yield func(unit, error) bool) {
		missing, flows := slices.Clone(ids), replay.NewFlows(cli.Build())
		for id, err := range r.AuditJobs(ctx, ids) {
			if err != nil {
				yield(nil, fmt.Errorf("list the jobs: %w", err))
				return
			}
			missing = slices.DeleteFunc(missing, func(m journal.JobID) bool { return m == id })
			if !yield(jobUnit(r, id, flows), nil) {
				return
			}
		}
		for _, id := range missing {
			if !yield(func(_ context.Context, emit func(outcome)) {
				emit(outcome{job: id, err: fmt.Errorf("job %s: %w", id, store.ErrNotFound)})
			}, nil) {
				return
			}
		}
	}
}

func jobUnit(r reader, id journal.JobID, flows *replay.Flows) unit {
	return func(ctx context.Context, emit func(outcome)) {
		bar := progressOf(ctx)
		report, err := store.VerifyJob(ctx, r, id, flows,
			func(entries iter.Seq2[journal.Record, error]) iter.Seq2[journal.Record, error] {
				return watched(ctx, bar, entries)
			})
		bar.job()
		if err != nil {
			emit(outcome{job: id, err: fmt.Errorf("audit job %s: %w", id, err)})
			return
		}
		emit(outcome{job: id, report: report})
	}
}
