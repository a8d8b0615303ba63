package postgres

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Due implements store.Engine.
func (s *Store) Due(ctx context.Context, limit int) (due []store.DueRow, t store.Timing, err error) {
	if err := store.AtMost("due", limit, store.MaxSweep); err != nil {
		return nil, t, err
	}
	err = s.query(ctx, "due", func() { due, t = nil, store.Timing{} }, func(v row) error {
		now := v.int(0)
		if next := v.int(1); next != 0 {
			t.Next = time.Duration(next-now) * time.Microsecond
		}
		if t.Late = v.bool(2); v.null(3) {
			return nil // no row is due
		}
		due = append(due, store.DueRow{
			Job: v.job(3), GUID: v.guid(4), Kind: journal.MessageKind(v.text(5)), Topic: v.text(6),
			Publication: int(v.int(7)), Turn: int(v.int(8)), TurnSent: int(v.int(9)), Runs: int(v.int(11)),
			PublishedAt: collation.Micros(v.int(10)), Now: collation.Micros(now),
		})
		return nil
	}, pInt(int64(limit)))
	return due, t, err
}

// Claim takes due rows for sending (T2). A claim of unknown outcome is not repeated: its rows
// become due again by themselves.
func (s *Store) Claim(ctx context.Context, claims []store.Claim) ([]store.Outgoing, error) {
	n := len(claims)
	if n == 0 {
		return nil, nil
	}
	if err := store.AtMost("claim", n, store.MaxSweep); err != nil {
		return nil, err
	}
	params := arrays(claims, func(c *columns, x store.Claim) {
		c.uuid(x.Row.Job)
		c.uuid(x.Row.GUID)
		c.int(int64(x.Row.Publication))
		c.int(int64(x.Row.Turn))
		c.bool(x.Send)
		c.int(x.Again.Microseconds())
		c.int(x.Session)
		c.bool(x.Refused)
	})
	var out []store.Outgoing
	err := s.with(ctx, func(c *conn) error {
		return c.query(ctx, "claim", func(v row) error {
			x, err := readRow(v)
			if err != nil { // the process that loads this row will report it; the others are still claimed
				s.log.Error("a row that cannot be read is not sent", "error", err)
				return nil
			}
			from, err := readFrom(v, rowWidth+6)
			if err != nil {
				s.log.Error("a row whose job cannot be read is not sent", "job", x.Job.String(), "error", err)
				return nil
			}
			o := store.Outgoing{
				Row: *x, JobKey: v.text(rowWidth), Generation: v.int(rowWidth + 1), Flow: v.flow(rowWidth + 2),
				Trace: v.text(rowWidth + 5),
			}
			o.SetRoot(from)
			out = append(out, o)
			return nil
		}, params...)
	})
	if err != nil {
		return nil, settle("claim", err)
	}
	return out, nil
}

// Publications implements store.Engine.
func (s *Store) Publications(ctx context.Context, rows []collation.RowKey) ([]int, error) {
	if err := store.AtMost("publications", len(rows), store.MaxSweep); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, nil
	}
	params := arrays(rows, func(c *columns, k collation.RowKey) {
		c.uuid(k.Job)
		c.uuid(k.GUID)
	})
	var out []int
	err := s.query(ctx, "publications", func() { out = make([]int, len(rows)) }, func(v row) error {
		out[v.int(0)-1] = int(v.int(1))
		return nil
	}, params...)
	return out, err
}

// Late implements store.Engine.
func (s *Store) Late(ctx context.Context, kind journal.MessageKind, limit int) ([]collation.RowKey, error) {
	if err := store.AtMost("late", limit, store.MaxSweep); err != nil {
		return nil, err
	}
	return readAll(ctx, s, "late", func(v row) (collation.RowKey, error) {
		return collation.RowKey{Job: v.job(0), GUID: v.guid(1)}, nil
	}, pText(string(kind)), pInt(int64(limit)))
}

// Prune removes old records that only guard against repetition: batch markers (J4) and records of
// signals.
func (s *Store) Prune(ctx context.Context, limit int) (int, error) {
	return s.change(ctx, "prune", pInt(store.MarkerAge.Microseconds()), pInt(store.SignalAge.Microseconds()),
		pInt(int64(limit)))
}
