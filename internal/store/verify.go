package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// VerifyJob verifies one job with all that is stored of it, and compares what it has taken from
// other jobs with their journals: the generations that it resumes, the job that a fork goes on
// from, and the children that those waited for. flows is that of Stored.Verify. through, if it is not
// nil, passes on the job's entries, and may watch them. Errors are those of reading: ErrNotFound
// among others.
func VerifyJob(
	ctx context.Context, r Reader, id journal.JobID, flows *replay.Flows,
	through func(iter.Seq2[journal.Record, error]) iter.Seq2[journal.Record, error],
) (report *replay.Report, err error) {
	err = r.Audit(ctx, id, func(s *Stored, entries iter.Seq2[journal.Record, error]) (err error) {
		if through != nil {
			entries = through(entries)
		}
		report, err = s.Verify(flows, entries)
		return err
	})
	if err == nil {
		err = handOver(ctx, r, report)
	}
	return report, err
}

// handOver compares what a job has taken from other jobs with their journals.
func handOver(ctx context.Context, r Reader, report *replay.Report) error {
	var others []journal.JobID
	for i := range report.Copies {
		if c := &report.Copies[i]; c.Chain.IsZero() && !c.Taken.Chain.IsZero() &&
			!slices.Contains(others, journal.JobID(c.Taken.Chain)) {
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
		err := r.Audit(ctx, others[i], func(s *Stored, entries iter.Seq2[journal.Record, error]) error {
			if s.Job.State == journal.JobExpired {
				report.Unproved(fmt.Sprintf("job %s has expired, from which it took something over", s.Job.ID))
				return nil
			}
			header, _ := s.Replay()
			broken, err := report.HandOver(header, entries)
			if broken != nil {
				report.Violate(broken)
			}
			if from := s.Job.From; from != nil && report.From != nil && s.Job.Key == report.Header.Key &&
				!slices.Contains(others, from.Job) {
				others = append(others, from.Job)
			}
			return err
		})
		if errors.Is(err, ErrNotFound) {
			report.Unproved(fmt.Sprintf("job %s is not there, from which it took something over", others[i]))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
