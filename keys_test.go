package quipu

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// S1: each process reads a key that somebody added, and which others have ended, as soon as it sees
// that something was decided about the space, also where no message comes to it: an engine, which
// raises the beat, and a process that only looks.
func TestS1KeysThatWereRotatedAreReadSoon(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	open := func(cfg Config) *Runtime {
		cfg.Postgres, cfg.Logger = dsn, discard()
		rt, err := Open(t.Context(), cfg)
		require.NoError(t, err)
		t.Cleanup(rt.Close)
		return rt
	}
	all := []*Runtime{open(Config{NATS: devtest.NATS(t).URL(), Roles: []Role{RoleEngine}}), open(Config{})}

	_, err := all[1].Keys().Rotate(t.Context(), true)
	require.NoError(t, err)
	now, err := keyring.Open(t.Context(), all[1].store, discard())
	require.NoError(t, err)
	for i, rt := range all {
		require.Eventually(t, func() bool {
			mac, err := rt.keys.Ring().Sign("pay", []byte("x"))
			return err == nil && now.Ring().Check("pay", mac, []byte("x")) == nil
		}, 10*time.Second, 20*time.Millisecond, "process %d signs with a key that has ended", i)
	}
}

// S13, S1: an older database that was accepted lacks the key of a topic that was deployed since. The
// processes that live store it again, for workers that cannot derive it.
func TestS13AnOlderDatabaseGetsTheKeysOfTopics(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	rt, err := Open(t.Context(), Config{Postgres: dsn, Space: "shop", NATS: devtest.NATS(t).URL(), Roles: []Role{RoleEngine}, Logger: discard()})
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	require.NoError(t, rt.keys.Know(t.Context(), "pay"))

	db, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer db.Close(t.Context())
	older, err := db.Exec(t.Context(), "WITH gone AS (DELETE FROM quipu_shop.topic_keys WHERE topic = 'pay' RETURNING 1) UPDATE quipu_shop.space SET epoch = epoch + 1 FROM gone")
	require.NoError(t, err)
	require.EqualValues(t, 1, older.RowsAffected())
	require.Eventually(t, func() bool {
		var n int
		return db.QueryRow(t.Context(), "SELECT count(*) FROM quipu_shop.topic_keys WHERE topic = 'pay'").Scan(&n) == nil && n == 1
	}, 30*time.Second, 20*time.Millisecond)
}
