package postgres

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Gauges implements store.Lists, in one round trip.
func (s *Store) Gauges(ctx context.Context) (*store.Gauges, error) {
	var g *store.Gauges
	by := func(counts map[string]int64) func(row) error {
		return func(v row) error { counts[v.text(0)] = v.int(1); return nil }
	}
	late := func(v row, i int) store.Backlog {
		return store.Backlog{N: v.int(i), Age: time.Duration(v.int(i+1)) * time.Microsecond}
	}
	jobs := func(counts map[store.JobsOf]int64) func(row) error {
		return func(v row) error {
			counts[store.JobsOf{Flow: v.text(0), State: journal.JobState(v.text(1))}] = v.int(2)
			return nil
		}
	}
	err := s.look(ctx, "gauges", func(c *conn) error {
		g = &store.Gauges{
			Jobs: map[store.JobsOf]int64{}, Closed: map[store.JobsOf]int64{}, Running: map[string]store.Backlog{},
			Lost: map[string]store.LostRuns{}, Dead: map[string]int64{}, Processes: map[string]int64{},
		}
		return c.run(ctx,
			step{"gauge_jobs", [][]byte{pInt(store.MaxGaugedBy), pInt(store.MaxGaugedJobs)}, jobs(g.Jobs)},
			step{"gauge_closed", [][]byte{pInt(store.MaxGaugedBy), pInt(store.MaxSampledPages)}, jobs(g.Closed)},
			step{"gauge_running", [][]byte{pInt(store.MaxGaugedBy)}, func(v row) error {
				g.Running[v.text(0)] = late(v, 1)
				return nil
			}},
			step{"gauge_lost", [][]byte{pInt(store.MaxGauged), pInt(store.MaxGaugedBy)}, func(v row) error {
				g.Lost[v.text(0)] = store.LostRuns{N: v.int(1), Most: v.int(2), Job: v.job(3)}
				return nil
			}},
			step{"gauge_dead", [][]byte{pInt(store.MaxGauged), pInt(store.MaxGaugedBy)}, by(g.Dead)},
			step{"gauge_processes", nil, by(g.Processes)},
			step{"gauge_late", [][]byte{pInt(store.MaxGauged)}, func(v row) error {
				g.Overdue, g.Timers, g.Expired = late(v, 0), late(v, 2), late(v, 4)
				return nil
			}})
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Pool is the state of the connection pool.
type Pool struct {
	Used, Idle, Limit int64
	// Waits is how often somebody had to wait for a connection since Open, Waited how long in all.
	Waits  int64
	Waited time.Duration
}

// Pool reads the state of the connection pool; it asks no server.
func (s *Store) Pool() Pool {
	p := s.pool.Stat()
	return Pool{
		Used: int64(p.AcquiredConns()), Idle: int64(p.IdleConns()), Limit: int64(p.MaxConns()),
		Waits: p.EmptyAcquireCount(), Waited: p.EmptyAcquireWaitTime(),
	}
}
