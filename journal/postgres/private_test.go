package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal/store"
)

// S15: a space keeps digests of keys from its beginning, or never; only its owner says so. What
// is refused changes nothing. (tests/attacks has a space that does.)
func TestPrivateKeysAreOfANewSpace(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "roles3" })
	require.NoError(t, s.Roles(t.Context()))
	refused := func(why string) {
		require.ErrorIs(t, s.SetPrivateKeys(t.Context()), store.ErrRejected, why)
		private := must(s.PrivateKeys(t.Context()))(t)
		require.False(t, private)
		require.Zero(t, s.rows(t, "pg_constraint WHERE conname LIKE '%key_private' AND connamespace = current_schema()::regnamespace"))
	}
	requireForbidden(t, as(t, s, "engine").SetPrivateKeys(t.Context()), "engine", "SetPrivateKeys")
	signal := signalOf(s, "x", "")
	signal.Keep = collation.Micros(1e12)
	must(s.driven().Signal(t.Context(), signal, resend))(t)
	refused("a signal is kept")
	require.NoError(t, s.run(t, "DELETE FROM dispatches"))
	startJobs(t, s, "k")
	require.NoError(t, s.run(t, "DELETE FROM dispatches"))
	refused("a job has a key")
}
