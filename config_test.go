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

// S5: the options of NATS come from the environment, too; and a fault names its field before
// anything is connected.
func TestS5NATSOptions(t *testing.T) {
	for name, value := range map[string]string{
		"CREDS": "a.creds", "NKEY": "b.nk", "CA": "ca.pem", "CERT": "c.pem", "KEY": "c.key", "DOMAIN": "hub", "PREFIX": "acme",
		"REPLICAS": "3", "MAX_MIB": "2048", "MAX_AGE": "36h", "CLUSTER": "east", "TAGS": "ssd,eu",
	} {
		t.Setenv("QUIPU_NATS_"+name, value)
	}
	got, err := quipu.ConfigFromEnv()
	require.NoError(t, err)
	require.Equal(t, quipu.NATSOptions{
		Credentials: "a.creds", NKeySeed: "b.nk", CA: "ca.pem", Cert: "c.pem", Key: "c.key", Domain: "hub", Prefix: "acme",
		Replicas: 3, MaxBytes: 2 << 30, MaxAge: 36 * time.Hour, PlacementCluster: "east", PlacementTags: []string{"ssd", "eu"},
	}, got.NATSOptions)
	t.Setenv("QUIPU_NATS_MAX_MIB", "9999999999999")
	_, err = quipu.ConfigFromEnv()
	require.ErrorContains(t, err, "QUIPU_NATS_MAX_MIB=9999999999999")

	for want, o := range map[string]quipu.NATSOptions{
		"Config.NATSOptions.Replicas is 6, allowed are 1 to 5":                  {Replicas: 6},
		"Config.NATSOptions.MaxAge is 1s: at least 1h0m0s":                      {MaxAge: time.Second},
		"Config.NATSOptions.MaxBytes is 1, allowed are 1048576":                 {MaxBytes: 1},
		"Config.NATSOptions.Prefix is \"Q\": a lower-case letter":               {Prefix: "Q"},
		"Config.NATSOptions.CA /none cannot be used: open /none: no such file":  {CA: "/none"},
		"Config.NATSOptions.Cert is missing: there is a key":                    {Key: "/none"},
		"Config.NATSOptions.Credentials /none cannot be used: open /none: no s": {Credentials: "/none"},
	} {
		_, err := quipu.Open(t.Context(), quipu.Config{Postgres: "postgres://127.0.0.1:1/x", NATS: "nats://127.0.0.1:1", NATSOptions: o})
		require.ErrorIs(t, err, quipu.ErrConfig, want)
		require.ErrorContains(t, err, want)
	}
}
