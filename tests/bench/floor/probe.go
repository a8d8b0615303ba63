package floor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Written is what a server wrote to a part of its WAL.
type Written struct {
	WAL     int64 // bytes
	Rows    int64 // inserted, updated and deleted
	Commits int64 // transactions that wrote and committed
}

// Position returns where the server's WAL ends, in bytes.
func Position(ctx context.Context, dsn string) (at int64, err error) {
	err = ask(ctx, dsn, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::int8`).Scan(&at)
	})
	if err != nil {
		return 0, fmt.Errorf("floor: position of the WAL: %w", err)
	}
	return at, nil
}

const countWritten = `SELECT
	coalesce(sum(count) FILTER (WHERE "resource_manager/record_type" ~ '^Heap2?/(INSERT|UPDATE|HOT_UPDATE|DELETE|MULTI_INSERT)'), 0)::int8,
	coalesce(sum(count) FILTER (WHERE "resource_manager/record_type" = 'Transaction/COMMIT'), 0)::int8
	FROM pg_get_wal_stats('0/0'::pg_lsn + $1::int8, '0/0'::pg_lsn + $2::int8, true)`

// Wrote counts what was written between two positions. It reads the WAL, because the server's own
// counters come late and count reading transactions, too. The server must have kept the WAL
// (wal_keep_size). Wrote needs a superuser and the extension pg_walinspect (PostgreSQL 15 or
// later, with its contrib modules).
func Wrote(ctx context.Context, dsn string, from, to int64) (Written, error) {
	w := Written{WAL: to - from}
	err := ask(ctx, dsn, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_walinspect"); err != nil {
			return err
		}
		return conn.QueryRow(ctx, countWritten, from, to).Scan(&w.Rows, &w.Commits)
	})
	if err != nil {
		return Written{}, fmt.Errorf("floor: count what the WAL holds: %w", err)
	}
	return w, nil
}

// ask runs do on a connection of its own.
func ask(ctx context.Context, dsn string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return do(conn)
}
