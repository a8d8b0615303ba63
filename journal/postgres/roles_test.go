package postgres

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/internal/store"
)

// S8: row-level security costs an engine nothing. Its statements have the plans that the owner of
// the tables has, who is not subject to it.
func TestPoliciesCostAnEngineNothing_S8(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "roles6" })
	require.NoError(t, s.Roles(t.Context()))
	plans := func(s *Store) map[string]string {
		all := make(map[string]string)
		require.NoError(t, s.with(t.Context(), func(c *conn) error {
			for _, name := range slices.Sorted(maps.Keys(statements)) {
				if !strings.Contains(statements[name], "$") || c.require(t.Context(), name) != nil ||
					!permitted(t, c, name) {
					continue
				}
				lines := slices.DeleteFunc(explain(t, c, name), func(line string) bool {
					// a filter, of a row that was found: its conditions may stand in another order
					return !node.MatchString(line)
				})
				all[name] = strings.Join(lines, "\n")
			}
			return nil
		}))
		return all
	}
	owner, engine := plans(s), plans(as(t, s, "engine"))
	require.Greater(t, len(engine), 60)
	for name, plan := range engine {
		require.Equal(t, owner[name], plan, name)
	}
}

// node matches the lines of a plan that say what is read, by which index, and in which order.
var node = regexp.MustCompile(`^(->|Index Cond:|Sort Key:|(Sub|Init)Plan|[A-Z][a-z]+$|[A-Z][a-z]+ on )`)

// permitted says whether the role has the rights of a statement.
func permitted(t *testing.T, c *conn, name string) bool {
	t.Helper()
	args := make([]string, len(c.known[name].ParamOIDs))
	for i := range args {
		args[i] = "NULL"
	}
	require.NoError(t, c.exec(t.Context(), "PREPARE q AS "+statements[name]))
	err := c.exec(t.Context(), "EXPLAIN EXECUTE q("+strings.Join(args, ",")+")")
	require.NoError(t, c.exec(t.Context(), "DEALLOCATE q"))
	return !forbidden(err)
}

// S1, S8: a login that is bound to a topic has its key at once, and no other one.
func TestGrantedTopicsHaveTheirKeys_S8(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "roles7" })
	require.NoError(t, s.Roles(t.Context()))
	require.ErrorIs(t, s.GrantWorker(t.Context(), "nobody_has_this", []string{"pay"}), store.ErrNotFound)
	require.NoError(t, s.GrantWorker(t.Context(), "quipu", []string{"pay"}))
	own := must(s.Keys(t.Context()))(t)
	require.NoError(t, s.PutTopicKeys(t.Context(), keyring.New(own).TopicKeys("ship")))

	k := must(as(t, s, "worker").Keys(t.Context()))(t)
	require.Empty(t, k.Roots)
	require.Equal(t, keyring.New(own).TopicKeys("pay"), k.Topics)
	require.NoError(t, s.RevokeWorker(t.Context(), "quipu", []string{"pay"}))
	k = must(as(t, s, "worker").Keys(t.Context()))(t)
	require.Empty(t, k.Topics)
}

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
