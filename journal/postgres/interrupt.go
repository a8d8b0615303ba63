package postgres

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var interruptStatements = []string{
	"begin", "load_lock", "clock", "load_jobs", "load_receipts", "load_named_rows", "write_marker", "write_rows_new", "commit", "rollback",
}

// Interrupt inserts an interrupt addressed to the job, under its lock: what was
// handled meanwhile is known by its receipt.
func (s *Store) Interrupt(ctx context.Context, in collation.Row, mode collation.Mode) (*store.Outgoing, bool, error) {
	if err := collation.CheckInterrupt(&in); err != nil {
		return nil, false, rejected("interrupt", err)
	}
	var out *store.Outgoing
	err := s.decide(ctx, "interrupt", func(c *conn) error {
		out = nil
		if err := c.require(ctx, interruptStatements...); err != nil {
			return err
		}
		id, key := [][]byte{pUUIDs([]journal.JobID{in.Job})}, rowKeys([]rowKey{{in.Job, in.GUID}})
		var now collation.Micros
		var job collation.Job
		known := false
		err := c.run(
			ctx, step{name: "begin"}, step{name: "load_lock", params: id},
			step{"clock", nil, func(v row) error { now = collation.Micros(v.int(0)); return nil }},
			step{"load_jobs", id, func(v row) error { job = s.readJob(v); return nil }},
			step{"load_receipts", key, func(row) error { known = true; return nil }},
			step{"load_named_rows", key, func(row) error { known = true; return nil }},
		)
		switch {
		case err != nil:
			abandon(ctx, c)
			return classify("interrupt", err)
		case job.ID.IsZero() || job.State == journal.JobExpired:
			abandon(ctx, c)
			return fmt.Errorf("postgres: interrupt: %w: job %s", store.ErrNotFound, in.Job)
		case known:
			abandon(ctx, c)
			return nil
		}
		sent := in
		sent.NextAt = now
		if mode.Resend > 0 {
			sent.Publication, sent.PublishedAt, sent.TurnSent, sent.NextAt = 1, now, sent.Turn, now+mode.Resend
		}
		w := &writes{rows: []*rowWrite{inserted(&sent)}}
		if err := s.conclude(ctx, c, w.queue); err != nil {
			return err
		}
		out = &store.Outgoing{Row: sent, JobKey: job.Key, Generation: job.Generation, Flow: job.Flow, Trace: job.Trace}
		return nil
	})
	return out, out != nil, err
}
