package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

func due(r *collation.Row, now collation.Micros) bool {
	return r.NextAt != collation.Never && r.NextAt <= now && r.Held == ""
}

// Due implements store.Engine.
func (s *Store) Due(_ context.Context, limit int) ([]store.DueRow, time.Duration, error) {
	if limit > store.MaxSweep {
		return nil, 0, fmt.Errorf("%w: Due of %d rows, at most %d", errLimits, limit, store.MaxSweep)
	}
	if err := s.before("due"); err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	rows := s.collect(func(j *job, r *collation.Row) bool {
		return due(r, now) && (j == nil || j.State != journal.JobQuarantined)
	}, func(r *collation.Row) collation.Micros { return r.NextAt })
	if len(rows) == 0 {
		return nil, 0, nil
	}
	late := time.Duration(now-rows[0].NextAt) * time.Microsecond
	out := make([]store.DueRow, 0, min(len(rows), limit))
	for _, r := range rows[:min(len(rows), limit)] {
		out = append(out, store.DueRow{
			Job: r.Job, GUID: r.GUID, Kind: r.Kind, Topic: r.Topic, Publication: r.Publication,
			Turn: r.Turn, TurnSent: r.TurnSent, PublishedAt: r.PublishedAt, Now: now,
		})
	}
	return out, late, nil
}

// collect gathers rows, ordered by a time and then by their ids. The job is nil
// for rows that are addressed to none that is there.
func (s *Store) collect(
	want func(*job, *collation.Row) bool, at func(*collation.Row) collation.Micros,
) []*collation.Row {
	var rows []*collation.Row
	for id, set := range s.rows {
		for _, r := range set {
			if want(s.jobs[id], r) {
				rows = append(rows, r)
			}
		}
	}
	slices.SortFunc(rows, func(a, b *collation.Row) int {
		return cmp.Or(cmp.Compare(at(a), at(b)), compareIDs(a.Job, b.Job), compareIDs(a.GUID, b.GUID))
	})
	return rows
}

// Claim implements store.Engine.
func (s *Store) Claim(_ context.Context, claims []store.Claim) ([]store.Outgoing, error) {
	if len(claims) > store.MaxSweep {
		return nil, fmt.Errorf("%w: Claim of %d rows, at most %d", errLimits, len(claims), store.MaxSweep)
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
	if !due(&row, now) || row.Publication != c.Row.Publication || row.Turn != c.Row.Turn {
		return nil
	}
	row.NextAt = now + micros(c.Again)
	if c.Send {
		row.Publication++
		row.TurnSent, row.PublishedAt = row.Turn, now
	}
	s.putRow(u, &row)
	if !c.Send {
		return nil
	}
	return s.outgoing(&row)
}

func micros(d time.Duration) collation.Micros { return collation.Micros(d.Microseconds()) }

// TurnOverdue implements store.Engine.
func (s *Store) TurnOverdue(_ context.Context, limit int) (int, error) {
	n := 0
	err := s.write("turn overdue", func(u *undo) error {
		now := s.now()
		rows := s.collect(func(j *job, r *collation.Row) bool {
			return r.Kind == journal.MessageRequest && r.WithinAt != collation.Never && r.WithinAt <= now &&
				j != nil && j.State == journal.JobOpen && !s.rowLocked(r.Job, r.GUID)
		}, func(r *collation.Row) collation.Micros { return r.WithinAt })
		for _, r := range rows[:min(len(rows), limit)] {
			row := *r
			answer(&row, now, &journal.Response{
				Kind: journal.ResponseTerminal, Code: collation.CodeTimeout,
				Error: &journal.Failure{Class: "within", Message: "no answer within the activity's `within`: look for workers of its topic"},
			})
			s.putRow(u, &row)
			n++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// answer turns a request's row (T1): the engine is asked from now on, and no
// lease is given.
func answer(row *collation.Row, now collation.Micros, r *journal.Response) {
	if row.Undo && row.Kind == journal.MessageRequest {
		row.Input = row.Body // its compensations need it, and wait for the end of the lease (3.5)
	}
	if !row.Undo {
		row.LeaseUntil = collation.Never
	}
	row.Kind, row.Body = journal.MessageAnswer, wire.Encode(wire.FromJournal(r))
	row.NextAt, row.Held, row.Holder = now, "", ""
	row.WithinAt, row.TurnSent = collation.Never, 0
}
