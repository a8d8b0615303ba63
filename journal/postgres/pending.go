package postgres

import (
	"context"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

func (s *Store) Deliver(context.Context, []collation.RowKey, collation.Mode) ([]store.Outgoing, error) {
	panic("pending")
}
func (s *Store) ExpireSignals(context.Context, int) (int, error) { return 0, nil }
func (s *Store) Order(context.Context, journal.JobID) (*collation.Row, error) {
	return nil, store.ErrNotFound
}

func (s *Store) Spawn(context.Context, *collation.Row, store.Start, *collation.Row, collation.Mode) error {
	panic("pending")
}
func (s *Store) Refuse(context.Context, *collation.Row, *collation.Row) error { panic("pending") }
func (s *Store) Discard(context.Context, []collation.RowKey) (int, error)     { return 0, nil }
func (s *Store) Expire(context.Context, int) (bool, error)                    { return false, nil }
func (s *Store) Signal(context.Context, *collation.Signal, collation.Mode) (store.Signalled, error) {
	panic("pending")
}

func (s *Store) Interrupt(context.Context, collation.Row, collation.Mode) (*store.Outgoing, bool, error) {
	panic("pending")
}
func (s *Store) Schedules(context.Context) ([]store.Schedule, error) { return nil, nil }
func (s *Store) MarkSchedule(context.Context, string, collation.Micros, collation.Micros) error {
	panic("pending")
}
