package inspect

import (
	"context"
	"fmt"
	"iter"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/replay"
)

// Verify runs all checks on a job, as journal-verify does. build is this build, as entries name
// builds. Errors are those of reading; faults of the journal are in the report.
func (r *Reader) Verify(ctx context.Context, id journal.JobID, build string) (*replay.Report, error) {
	return store.VerifyJob(ctx, r.Source, id, replay.NewFlows(build), nil)
}

// Export writes one job: store.ErrNotFound, also if it has expired.
func (r *Reader) Export(ctx context.Context, id journal.JobID, out *export.Writer) error {
	return r.Audit(ctx, id, func(s *store.Stored, records iter.Seq2[journal.Record, error]) error {
		if s.Job.State == journal.JobExpired {
			return fmt.Errorf("%w: it has expired meanwhile", store.ErrNotFound)
		}
		j := &s.Job
		return out.Job(export.Header{
			Space: j.Space, Job: j.ID, Generation: j.Generation, Key: j.Key, Head: j.Head, Flow: s.FlowDigest,
		}, s.Attachments, records)
	})
}
