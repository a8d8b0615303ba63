package attacks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev"
	"github.com/quipu-journal/quipu/dev/devtest"
)

// yesterday is a space on a cluster of its own, of which a copy of an earlier time was kept.
type yesterday struct {
	*target
	pg *dev.Postgres
}

func newYesterday(t *testing.T) *yesterday {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		_ = os.Chmod(d, 0o755) // the database's user must be able to enter it
	}
	pg, err := devtest.Start(t.Context(), filepath.Join(dir, "pg"), dev.PostgresOptions{Databases: []string{"shop"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pg.Stop(dev.StopImmediate)) })
	return &yesterday{&target{t: t, dsn: pg.DSN("shop"), nats: devtest.NATS(t)}, pg}
}
