package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/replay"
)

// reader is what the command reads of a database.
type reader interface {
	store.Reader
	FindJob(ctx context.Context, key string) (journal.JobID, error)
	Counts(ctx context.Context) (map[journal.JobState]int64, error)
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
		var report *replay.Report
		err := r.Audit(ctx, id, func(s *store.Stored, entries iter.Seq2[journal.Record, error]) (err error) {
			report, err = s.Verify(flows, watched(ctx, bar, entries))
			return err
		})
		if err == nil {
			err = handOver(ctx, r, report)
		}
		bar.job()
		if err != nil {
			emit(outcome{job: id, err: fmt.Errorf("audit job %s: %w", id, err)})
			return
		}
		emit(outcome{job: id, report: report})
	}
}

// handOver compares what a job has taken from other jobs with their journals: the generations
// that it resumes, the job that a fork goes on from, and the children that those waited for.
func handOver(ctx context.Context, r reader, report *replay.Report) error {
	var others []journal.JobID
	for i := range report.Copies {
		if c := &report.Copies[i]; c.Chain.IsZero() && !c.Taken.Chain.IsZero() && !slices.Contains(others, journal.JobID(c.Taken.Chain)) {
			others = append(others, journal.JobID(c.Taken.Chain))
		}
	}
	if report.From != nil {
		others = append(others, report.From.Job)
		if f := report.From.Fork; f != nil && f.Job != report.From.Job {
			others = append(others, f.Job)
		}
	}
	for i := 0; i < len(others); i++ {
		err := r.Audit(ctx, others[i], func(s *store.Stored, entries iter.Seq2[journal.Record, error]) error {
			if s.Job.State == journal.JobExpired {
				report.Unproved(fmt.Sprintf("job %s has expired, from which it took something over", s.Job.ID))
				return nil
			}
			header, _ := s.Replay()
			broken, err := report.HandOver(header, entries)
			if broken != nil {
				report.Violate(broken)
			}
			if from := s.Job.From; from != nil && report.From != nil && s.Job.Key == report.Header.Key && !slices.Contains(others, from.Job) {
				others = append(others, from.Job)
			}
			return err
		})
		if errors.Is(err, store.ErrNotFound) {
			report.Unproved(fmt.Sprintf("job %s is not there, from which it took something over", others[i]))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
