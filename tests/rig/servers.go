package rig

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/dev"
	"github.com/quipu-journal/quipu/dev/devtest"
)

// Cluster is a Postgres of the test's own, which may be restarted and copied.
func Cluster(t testing.TB, opts dev.PostgresOptions) *dev.Postgres {
	t.Helper()
	dir, err := os.MkdirTemp("", "quipu-tests-pg-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return ClusterIn(t, dir, opts)
}

// ClusterIn is a Cluster below a directory.
func ClusterIn(t testing.TB, dir string, opts dev.PostgresOptions) *dev.Postgres {
	t.Helper()
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // the database's user passes it
	pg, err := devtest.Start(t.Context(), filepath.Join(dir, "pg"), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pg.Stop(dev.StopImmediate)) })
	return pg
}

// NATS is a server of the test's own, with options that dev does not know.
func NATS(t testing.TB, opts *natsserver.Options) *natsserver.Server {
	t.Helper()
	opts.NoSigs, opts.NoLog = true, true
	s, err := natsserver.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(time.Minute))
	return s
}
