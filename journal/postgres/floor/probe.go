package floor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Probe is what a database has written so far or, as Wrote gives it, in between.
type Probe struct {
	WAL  int64 // bytes, of the server
	Rows int64 // rows inserted, updated and deleted in the schema
	// Commits are the transactions of the server that wrote and committed, as its
	// WAL has them; set by Wrote only. The counters of the server hold those that
	// only read as well.
	Commits int64
}

// Look reads the counters. Sessions report their rows with a delay of up to a
// second, or at their end.
func Look(ctx context.Context, dsn, schema string) (Probe, error) {
	return probe(ctx, dsn, schema, nil)
}

// Wrote is what was written since a probe. It reads the WAL in between, which the
// server must have kept (wal_keep_size), as a superuser, by the extension
// pg_walinspect: PostgreSQL 15 or later, with its contrib modules.
func Wrote(ctx context.Context, dsn, schema string, since Probe) (Probe, error) {
	return probe(ctx, dsn, schema, &since)
}

const countCommits = `SELECT coalesce(sum(count), 0)::int8
	FROM pg_get_wal_stats('0/0'::pg_lsn + $1::int8, '0/0'::pg_lsn + $2::int8, true)
	WHERE "resource_manager/record_type" = 'Transaction/COMMIT'`

func probe(ctx context.Context, dsn, schema string, since *Probe) (p Probe, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return p, fmt.Errorf("floor: connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = conn.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::int8,
		(SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::int8 FROM pg_stat_user_tables WHERE schemaname = $1)`,
		schema).Scan(&p.WAL, &p.Rows)
	if err != nil {
		return p, fmt.Errorf("floor: probe: %w", err)
	}
	if since == nil {
		return p, nil
	}
	if _, err = conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_walinspect"); err == nil {
		err = conn.QueryRow(ctx, countCommits, since.WAL, p.WAL).Scan(&p.Commits)
	}
	if err != nil {
		return p, fmt.Errorf("floor: count commits in the WAL: %w", err)
	}
	return Probe{WAL: p.WAL - since.WAL, Rows: p.Rows - since.Rows, Commits: p.Commits}, nil
}
