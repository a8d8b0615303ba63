package main

import (
	"context"
	"runtime"

	"github.com/quipu-journal/quipu/journal/postgres"
)

// openPostgres opens the space with one connection for each core, and one to list the jobs.
func openPostgres(ctx context.Context, dsn, space string) (reader, error) {
	return postgres.Open(ctx,
		postgres.Config{DSN: dsn, Space: space, MaxConns: runtime.GOMAXPROCS(0) + 1, AnyDatabase: true})
}
