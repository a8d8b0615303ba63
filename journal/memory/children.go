package memory

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// ordered returns the row that orders a child which has not begun, or nil: it was
// taken back, refused, or begun.
func (s *Store) ordered(child journal.JobID) *collation.Row {
	row := s.row(child, child.Start())
	if row == nil || row.Kind != journal.MessageStart || s.jobs[child] != nil {
		return nil
	}
	return row
}

// Order implements store.Engine.
func (s *Store) Order(_ context.Context, child journal.JobID) (*collation.Row, error) {
	if err := s.before("order"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.ordered(child)
	if row == nil {
		return nil, fmt.Errorf("memory: order of job %s: %w", child, store.ErrNotFound)
	}
	return copyRow(row), nil
}

// Spawn implements store.Engine.
func (s *Store) Spawn(
	_ context.Context, seen *collation.Row, st store.Start, reply *collation.Row, mode collation.Mode,
) error {
	err := s.write("spawn", func(u *undo) error {
		row := s.ordered(seen.Job)
		if row == nil {
			return store.ErrStale
		}
		order, err := row.Order()
		if err != nil {
			return err
		}
		st.Child, st.Parent = row.Job, &order.Parent
		started, err := s.start(u, &st, mode)
		if err != nil {
			return err
		}
		if started.Err != nil {
			return started.Err
		}
		return s.reply(u, reply)
	})
	if err != nil {
		return fmt.Errorf("memory: spawn job %s: %w", seen.Job, err)
	}
	return nil
}

// Refuse implements store.Engine.
func (s *Store) Refuse(_ context.Context, seen *collation.Row, reply *collation.Row) error {
	err := s.write("refuse", func(u *undo) error {
		row := s.ordered(seen.Job)
		if row == nil {
			return store.ErrStale
		}
		s.dropRow(u, row.Job, row.GUID)
		return s.reply(u, reply)
	})
	if err != nil {
		return fmt.Errorf("memory: refuse job %s: %w", seen.Job, err)
	}
	return nil
}

func (s *Store) reply(u *undo, reply *collation.Row) error {
	if reply == nil {
		return nil
	}
	return s.insertRow(u, *reply)
}

// licensed is the row of a child's start after its inception: the one that
// stands, addressed to the trigger, and without what was of its order.
func licensed(standing, born *collation.Row) collation.Row {
	row := *standing
	row.Activity, row.DAD, row.Origin = born.Activity, born.DAD, born.Origin
	row.Sender, row.Undo = journal.JobID{}, false
	return row
}
