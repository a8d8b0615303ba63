package postgres

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every file prepares against a fresh schema, and says what it is for.
func TestStatementsPrepare(t *testing.T) {
	t.Parallel()
	s := open(t)
	require.NoError(t, s.with(t.Context(), func(c *conn) error {
		for _, name := range slices.Sorted(maps.Keys(statements)) {
			text := statements[name]
			require.True(t, strings.HasPrefix(text, "-- "+name+": "), "%s begins with its name and contract", name)
			require.NoError(t, c.require(t.Context(), name))
			require.LessOrEqual(t, len(c.known[name].ParamOIDs), 24)
		}
		return nil
	}))
}

// No statement reads a table whole on its way to a commit: the plans of all
// writing and loading statements are made of index look-ups.
func TestStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	s := open(t)
	names := append(append([]string{}, loadStatements...), writeStatements...)
	names = append(names, "due", "claim", "lease_take", "row_lock", "effect_read", "turn_overdue", "prune")
	require.NoError(t, s.with(t.Context(), func(c *conn) error {
		for _, name := range names {
			text := statements[name]
			if !strings.Contains(text, "$") {
				continue
			}
			require.NoError(t, c.require(t.Context(), name))
			args := make([]string, len(c.known[name].ParamOIDs))
			for i := range args {
				args[i] = "NULL"
			}
			require.NoError(t, c.exec(t.Context(), "PREPARE p AS "+text))
			results, err := c.pg.Exec(t.Context(), "EXPLAIN EXECUTE p("+strings.Join(args, ",")+")").ReadAll()
			require.NoError(t, err)
			for _, r := range results[0].Rows {
				require.NotContains(t, string(r[0]), "Seq Scan", "%s", name)
			}
			require.NoError(t, c.exec(t.Context(), "DEALLOCATE p"))
		}
		return nil
	}))
}
