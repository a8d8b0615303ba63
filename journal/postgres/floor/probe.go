package floor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Probe is what a database has written so far.
type Probe struct {
	WAL  int64 // bytes
	Rows int64 // rows inserted, updated and deleted in the schema
	// Commits are transactions of the database that committed, reading ones as
	// well.
	Commits int64
}

// Sub is what was written between two probes.
func (p Probe) Sub(before Probe) Probe {
	return Probe{p.WAL - before.WAL, p.Rows - before.Rows, p.Commits - before.Commits}
}

// Look reads the counters. Sessions report their rows with a delay of up to a
// second, or at their end.
func Look(ctx context.Context, dsn, schema string) (Probe, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return Probe{}, fmt.Errorf("floor: connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var p Probe
	err = conn.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::int8,
		(SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::int8 FROM pg_stat_user_tables WHERE schemaname = $1),
		(SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())`,
		schema).Scan(&p.WAL, &p.Rows, &p.Commits)
	if err != nil {
		return Probe{}, fmt.Errorf("floor: probe: %w", err)
	}
	return p, nil
}
