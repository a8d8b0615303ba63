package quiputest

import (
	"context"
	"iter"
	"os"
	"slices"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/replay"
)

// Verify verifies the journal of every job: its entries alone, and against the tables (2.5). The
// test fails with the first entry that breaks a law. Run and CrashEverywhere call it at the end.
func (w *World) Verify() {
	w.t.Helper()
	err := w.audit(func(s *store.Stored, entries iter.Seq2[journal.Record, error]) error {
		report, err := s.Verify(nil, entries)
		if err != nil {
			return err
		}
		for _, c := range report.Checks {
			if c.Status != replay.Proved {
				w.t.Errorf("the journal of job %q: %s (%s) is %s: %v %s", s.Job.Key, c.Check, c.Check.Title(), c.Status, c.Violation, c.Note)
			}
		}
		left := slices.DeleteFunc(slices.Clone(report.Open), func(o replay.Open) bool {
			return o.What == "child" // it may outlive the job that waited for it: its outcome comes too late
		})
		if s.Job.State.Closed() && len(left) > 0 {
			w.t.Errorf("job %q is %s and has %d open: %+v", s.Job.Key, s.Job.State, len(left), left)
		}
		return nil
	})
	if err != nil {
		w.t.Errorf("verify: %v", err)
	}
}

// Export writes the journals of all jobs to a file for ReplayJournal, as `quipu export` does.
func (w *World) Export(name string) {
	w.t.Helper()
	file, err := os.Create(name)
	if err != nil {
		w.t.Fatalf("export: %v", err)
	}
	out := export.NewWriter(file)
	err = w.audit(func(s *store.Stored, entries iter.Seq2[journal.Record, error]) error {
		h, _ := s.Replay()
		return out.Job(export.Header{
			Space: h.Space, Job: h.Job, Generation: h.Generation, Key: h.Key, Head: h.Head, Flow: h.Flow,
		}, s.Attachments, entries)
	})
	if err == nil {
		err = out.Flush()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		w.t.Fatalf("export to %s: %v", name, err)
	}
}

// audit visits what is stored of every job.
func (w *World) audit(visit func(*store.Stored, iter.Seq2[journal.Record, error]) error) error {
	ctx := context.Background()
	for id, err := range w.store.AuditJobs(ctx, nil) {
		if err == nil {
			err = w.store.Audit(ctx, id, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
