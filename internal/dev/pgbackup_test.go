package dev_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// A cluster that was restored to a point in time is as any other: a standby of it recovers until
// it is promoted, and does not end by itself at a point in time, too.
func TestStandbyAfterARestore(t *testing.T) {
	t.Parallel()
	pg, err := dev.StartPostgres(t.Context(), devtest.Dir(t), dev.PostgresOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pg.Stop(dev.StopImmediate)) })
	require.NoError(t, pg.Backup(t.Context()))
	require.NoError(t, pg.Restore(t.Context(), true))
	standby, err := pg.Standby(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, standby.Stop(dev.StopImmediate)) }) // nothing, if it was promoted
	const recovers = "SELECT pg_is_in_recovery()"
	require.Equal(t, "f", psql(t, pg.DSN("postgres"), recovers), "the restore has ended")
	require.NoError(t, standby.Restart(t.Context(), dev.StopFast))
	require.Equal(t, "t", psql(t, standby.DSN("postgres"), recovers))
	require.NoError(t, pg.Promote(t.Context(), standby))
	require.Equal(t, "f", psql(t, pg.DSN("postgres"), recovers))
}
