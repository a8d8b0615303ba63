package examples_test

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/replay"
)

// settle waits until no closed job has a row left: messages that came too late, such as the
// outcome of a child that outlived it, get their verdict soon after (C15).
func (s *Space) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's own has ended
	defer cancel()
	for id, err := range below.Of(s.Runtime).AuditJobs(ctx, nil) {
		for err == nil {
			var view *store.JobView
			if view, err = below.Of(s.Runtime).Job(ctx, id); err != nil || !view.State.Closed() || len(view.Rows) == 0 {
				break
			}
			select {
			case <-ctx.Done():
				err = fmt.Errorf("job %s is closed and has rows: %+v", view.Key, view.Rows)
			case <-time.After(10 * time.Millisecond):
			}
		}
		if err != nil {
			s.t.Error(err)
			return
		}
	}
}

// verify verifies every job of the space: its entries alone, and against the tables (2.5). A
// closed job has nothing open.
func (s *Space) verify() {
	ctx := context.Background() // the test's own has ended
	jobs := 0
	for id, err := range below.Of(s.Runtime).AuditJobs(ctx, nil) {
		if err != nil {
			s.t.Error(err)
			return
		}
		jobs++
		err = below.Of(s.Runtime).Audit(ctx, id, func(stored *store.Stored, entries iter.Seq2[journal.Record, error]) error {
			report, err := stored.Verify(nil, entries)
			if err != nil {
				return err
			}
			key := stored.Job.Key
			for _, c := range report.Checks {
				if c.Status != replay.Proved {
					s.t.Errorf("job %s: %s (%s): %s: %v %s", key, c.Check, c.Check.Title(), c.Status, c.Violation, c.Note)
				}
			}
			if stored.Job.State.Closed() && report.OpenCount > 0 {
				s.t.Errorf("job %s is closed and has open: %+v", key, report.Open)
			}
			return nil
		})
		if err != nil {
			s.t.Error(err)
		}
	}
	if jobs == 0 {
		s.t.Error("no job was verified")
	}
}
