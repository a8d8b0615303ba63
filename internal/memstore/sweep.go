package memstore

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

func due(r *collation.Row, now collation.Micros) bool {
	return r.NextAt != collation.Never && r.NextAt <= now && r.Held == ""
}

// Due implements store.Engine.
func (s *Store) Due(_ context.Context, limit int) ([]store.DueRow, store.Timing, error) {
	if err := store.AtMost("due", limit, store.MaxSweep); err != nil {
		return nil, store.Timing{}, err
	}
	if err := s.before("due"); err != nil {
		return nil, store.Timing{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, rows := s.now(), s.overdue()
	out := make([]store.DueRow, 0, min(len(rows), limit))
	for _, r := range rows[:min(len(rows), limit)] {
		out = append(out, store.DueRow{
			Job: r.Job, GUID: r.GUID, Kind: r.Kind, Topic: r.Topic, Publication: r.Publication,
			Turn: r.Turn, TurnSent: r.TurnSent, Runs: r.Runs, PublishedAt: r.PublishedAt, Now: now,
		})
	}
	return out, s.timing(now), nil
}

// overdue lists the rows that Due lists.
func (s *Store) overdue() []*collation.Row {
	return s.collect(func(j *job, r *collation.Row) bool {
		return due(r, s.now()) && (j == nil || j.State != journal.JobQuarantined)
	}, func(r *collation.Row) collation.Micros { return r.NextAt })
}

// timing returns when the next row is due or request late, and whether a request is late now.
func (s *Store) timing(now collation.Micros) (t store.Timing) {
	by := func(at collation.Micros) {
		if until := time.Duration(at-now) * time.Microsecond; until > 0 && (t.Next == 0 || until < t.Next) {
			t.Next = until
		}
	}
	for _, r := range s.eachRow() {
		if by(r.WithinAt); r.Held == "" {
			by(r.NextAt)
		}
		t.Late = t.Late || r.WithinAt != collation.Never && r.WithinAt <= now && r.Kind == journal.MessageRequest
	}
	return t
}

// Announced implements store.Engine. It never calls told: no other process writes.
func (s *Store) Announced(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// Claim implements store.Engine.
func (s *Store) Claim(_ context.Context, claims []store.Claim) ([]store.Outgoing, error) {
	if err := store.AtMost("claim", len(claims), store.MaxSweep); err != nil {
		return nil, err
	}
	var out []store.Outgoing
	err := s.write("claim", func(u *undo) error {
		now := s.now()
		for i := range claims {
			if o := s.claim(u, &claims[i], now); o != nil {
				out = append(out, *o)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Store) claim(u *undo, c *store.Claim, now collation.Micros) *store.Outgoing {
	stored := s.row(c.Row.Job, c.Row.GUID)
	if stored == nil || s.rowLocked(stored.Job, stored.GUID) {
		return nil
	}
	row := *stored
	refused := c.Refused && row.Held == "" && row.NextAt != collation.Never && row.Holder == ""
	if !due(&row, now) && !refused || row.Publication != c.Row.Publication || row.Turn != c.Row.Turn {
		return nil
	}
	row.NextAt = now + micros(c.Again)
	if c.Send {
		row.Publication++
		row.TurnSent, row.PublishedAt = row.Turn, now
		if row.Holder == "" {
			row.Session = c.Session
		}
	}
	if !c.Send && c.Refused {
		row.TurnSent = collation.NoTurn
	}
	s.putRow(u, &row)
	if !c.Send {
		return nil
	}
	return s.outgoing(&row)
}

func micros(d time.Duration) collation.Micros { return collation.Micros(d.Microseconds()) }

// Publications implements store.Engine.
func (s *Store) Publications(_ context.Context, rows []collation.RowKey) ([]int, error) {
	if err := store.AtMost("publications", len(rows), store.MaxSweep); err != nil {
		return nil, err
	}
	if err := s.before("publications"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]int, len(rows))
	for i, k := range rows {
		if r := s.row(k.Job, k.GUID); r != nil && r.Kind == journal.MessageRequest && r.Held == "" {
			out[i] = r.Publication
		}
	}
	return out, nil
}

// Late implements store.Engine.
func (s *Store) Late(_ context.Context, kind journal.MessageKind, limit int) ([]collation.RowKey, error) {
	if err := store.AtMost("late", limit, store.MaxSweep); err != nil {
		return nil, err
	}
	if err := s.before("late"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.collect(func(j *job, r *collation.Row) bool {
		waits := r.Held == collation.HeldKept
		if kind == journal.MessageRequest {
			waits = j != nil && j.State == journal.JobOpen
		}
		return r.Kind == kind && waits && r.WithinAt != collation.Never && r.WithinAt <= s.now()
	}, func(r *collation.Row) collation.Micros { return r.WithinAt })
	keys := make([]collation.RowKey, 0, min(len(rows), limit))
	for _, r := range rows[:min(len(rows), limit)] {
		keys = append(keys, collation.RowKey{Job: r.Job, GUID: r.GUID})
	}
	return keys, nil
}
