package process

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport/nats"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// opened is a process with the defaults of a quipu.Config, until the test ends.
func opened(t *testing.T, cfg Config) *Process {
	t.Helper()
	cfg.Space, cfg.Name, cfg.Lanes, cfg.NATSWait, cfg.Observer = "default", t.Name(), engine.DefaultLanes, 5*time.Second,
		observer.Nop{}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// S13: a process that is told to end while it looks which database this is has nothing to warn of.
func TestTheLookOfAProcessThatEndsIsSilent(t *testing.T) {
	t.Parallel()
	var log devtest.Log
	p := opened(t, Config{
		Postgres: devtest.Postgres(t), NATS: &nats.Config{URL: devtest.NATS(t).URL()}, Roles: []string{RoleEngine},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.Eventually(t, func() bool {
		return p.Bus.Answers(t.Context()) == nil
	}, devtest.Patience, 5*time.Millisecond)
	ended, end := context.WithCancel(t.Context())
	end()
	w := &watcher{p: p}
	w.note(ended, w.look(ended))
	require.NotContains(t, log.String(), "level=WARN")
}

// S1: each process reads a key that somebody added, and which others have ended, as soon as it sees
// that something was decided about the space, also where no message comes to it: an engine, which
// raises the beat, and a process that only looks.
func TestS1KeysThatWereRotatedAreReadSoon(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	all := []*Process{
		opened(t, Config{Postgres: dsn, NATS: &nats.Config{URL: devtest.NATS(t).URL()}, Roles: []string{RoleEngine}}),
		opened(t, Config{Postgres: dsn, Roles: AllRoles()}),
	}

	_, err := all[1].Store.RotateKeys(t.Context(), true)
	require.NoError(t, err)
	now, err := keyring.Open(t.Context(), all[1].Store, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for i, p := range all {
		require.Eventually(t, func() bool {
			mac, err := p.Keys.Ring().Sign("pay", []byte("x"))
			return err == nil && now.Ring().Check("pay", mac, []byte("x")) == nil
		}, 10*time.Second, 20*time.Millisecond, "process %d signs with a key that has ended", i)
	}
}

// S13, S1: an older database that was accepted lacks the key of a topic that was deployed since. The
// processes that live store it again, for workers that cannot derive it.
func TestS13AnOlderDatabaseGetsTheKeysOfTopics(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	p := opened(t, Config{Postgres: dsn, NATS: &nats.Config{URL: devtest.NATS(t).URL()}, Roles: []string{RoleEngine}})
	require.NoError(t, p.Keys.Know(t.Context(), "pay"))

	db, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer db.Close(t.Context())
	older, err := db.Exec(t.Context(), "WITH gone AS (DELETE FROM quipu_default.topic_keys WHERE topic = 'pay' RETURNING 1) UPDATE quipu_default.space SET epoch = epoch + 1 FROM gone")
	require.NoError(t, err)
	require.EqualValues(t, 1, older.RowsAffected())
	require.Eventually(t, func() bool {
		var n int
		return db.QueryRow(t.Context(), "SELECT count(*) FROM quipu_default.topic_keys WHERE topic = 'pay'").Scan(&n) == nil && n == 1
	}, 30*time.Second, 20*time.Millisecond)
}
