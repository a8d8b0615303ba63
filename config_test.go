package quipu_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
)

// The variables of the worker command configure a program's own process. An error names the bad
// variable.
func TestConfigFromEnv(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dev.json"), []byte(`{"postgres":"postgres://dev","nats":"nats://dev","space":"shop","pid":1}`), 0o600))
	t.Setenv("QUIPU_DEV", dir)
	t.Setenv("QUIPU_ROLES", "engine, workers")
	t.Setenv("QUIPU_LEASE", "5s")
	t.Setenv("QUIPU_HOT_MIB", "0")
	t.Setenv("QUIPU_MAX_BATCH", "100")
	t.Setenv("QUIPU_MAX_CONNS", "20")
	t.Setenv("QUIPU_NO_MIGRATE", "true")
	t.Setenv("QUIPU_NATS_WAIT", "-1s")
	t.Setenv("QUIPU_WAIT_LOOK", "2s")
	t.Setenv("QUIPU_BUILD", "v7")
	want := quipu.Config{
		Postgres: "postgres://dev", NATS: "nats://dev", Space: "shop", Roles: []quipu.Role{quipu.RoleEngine, quipu.RoleWorkers},
		Lease: 5 * time.Second, HotBytes: -1, MaxBatch: 100,
		MaxConns: 20, NoMigrate: true, NATSWait: -time.Second, WaitLook: 2 * time.Second, Build: "v7",
	}
	got, err := quipu.ConfigFromEnv()
	require.NoError(t, err)
	require.Equal(t, want, got)
	t.Setenv("QUIPU_POSTGRES", "postgres://env")
	t.Setenv("QUIPU_HOT_MIB", "128")
	got, err = quipu.ConfigFromEnv()
	require.NoError(t, err)
	require.Equal(t, "postgres://env", got.Postgres)
	require.Empty(t, got.NATS, "a database that is named has nothing to do with the directory")
	require.Equal(t, 128<<20, got.HotBytes)
	t.Setenv("QUIPU_LEASE", "5")
	t.Setenv("QUIPU_LANES", "many")
	_, err = quipu.ConfigFromEnv()
	require.ErrorIs(t, err, quipu.ErrConfig)
	require.ErrorContains(t, err, "QUIPU_LEASE=5:")
	require.ErrorContains(t, err, "QUIPU_LANES=many:")
	_, err = quipu.ConfigFromDev(t.TempDir())
	require.ErrorIs(t, err, quipu.ErrConfig)
	require.ErrorContains(t, err, "start one with `worker dev --data ")
}

// Open without a database says which field is empty, and which variables set it.
func TestOpenWithoutServers(t *testing.T) {
	t.Parallel()
	_, err := quipu.Open(t.Context(), quipu.Config{})
	require.ErrorIs(t, err, quipu.ErrConfig)
	for _, said := range []string{"Config.Postgres is empty", "QUIPU_POSTGRES", "QUIPU_DEV"} {
		require.ErrorContains(t, err, said)
	}
}

// A number or a time out of its range is refused before anything is connected, with its field.
func TestConfigLimits(t *testing.T) {
	t.Parallel()
	for says, cfg := range map[string]quipu.Config{
		"Config.Lanes is 1025: at most 1024":                                     {Lanes: 1025},
		"Config.Committers is -1: at least 1, or 0 for the default":              {Committers: -1},
		"Config.Lease is 10ms: from 30ms to 1h0m0s, or 0 for the default":        {Lease: 10 * time.Millisecond},
		"Config.Drain is -1s: a positive time such as 10s, or 0 for the default": {Drain: -time.Second},
	} {
		cfg.Postgres = "postgres://127.0.0.1:1/x"
		_, err := quipu.Open(t.Context(), cfg)
		require.ErrorIs(t, err, quipu.ErrConfig)
		require.ErrorContains(t, err, says)
	}
}
