package attacks

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

// TestDatabaseWithoutFsync_S7: a database that loses what it acknowledged is refused by every
// process that writes, until an operator accepts it by name. The space's own chain says who.
func TestDatabaseWithoutFsync_S7(t *testing.T) {
	t.Parallel()
	pg := devtest.Cluster(t, dev.PostgresOptions{Weak: map[string]string{"fsync": "off"}})
	open := func(accept ...string) (*quipu.Runtime, error) {
		return quipu.Open(t.Context(), quipu.Config{
			Postgres: pg.DSN("postgres"), Space: "shop", Name: "ann", Build: "v1", Accept: accept, Logger: slog.New(slog.DiscardHandler),
		})
	}
	_, err := open()
	require.ErrorIs(t, err, quipu.ErrPreflight)
	require.ErrorContains(t, err, "fsync-off: fsync is off")
	_, err = open("synchronous-commit-off")
	require.ErrorIs(t, err, quipu.ErrPreflight, "another weakness")
	_, err = open("standby")
	require.ErrorContains(t, err, "cannot be accepted")
	_, err = open("fsync")
	require.ErrorContains(t, err, "fsync-off, full-page-writes-off, synchronous-commit-off can be accepted")

	for range 2 { // recorded once
		rt, err := open("fsync-off")
		require.NoError(t, err)
		st := below.Of(rt)
		entries, err := st.SpaceEntries(t.Context())
		require.NoError(t, err)
		require.Len(t, entries, 1)
		e := entries[0]
		require.Equal(t, journal.SpaceAccepted, e.Kind)
		require.Equal(t, map[string]string{"check": "fsync-off", "value": "off"}, e.Facts)
		require.Equal(t, []string{"ann", "quipu", "v1"}, []string{e.Who, e.Login, e.Build})
		require.NotZero(t, e.At)
		rt.Close()
	}
}
