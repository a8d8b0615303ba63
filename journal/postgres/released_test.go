package postgres

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// edited compares migrations with the sums of those that are released. Every migration but
// the newest must have one, because the next one is begun when it is released.
func edited(sums string, names, steps []string) error {
	released := 0
	for line := range strings.Lines(sums) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if released == len(steps) {
			return fmt.Errorf("%q: its migration is gone", line)
		}
		if is := fmt.Sprintf("%x  %s", sha256.Sum256([]byte(steps[released])), names[released]); line != is {
			return fmt.Errorf("%q: a released migration was edited, it is %q: take the change into a new one", line, is)
		}
		released++
	}
	if released < len(steps)-1 {
		return fmt.Errorf("%s has no sum in released.sum, and there is a newer one: add it as it was released", names[released])
	}
	return nil
}

// S16: a migration that was released is never edited.
func TestS16ReleasedMigrationsStay(t *testing.T) {
	t.Parallel()
	sums := must(os.ReadFile("migrations/released.sum"))(t)
	names := must(fs.Glob(migrationFiles, "migrations/*.sql"))(t)
	for i := range names {
		names[i] = path.Base(names[i])
	}
	require.NoError(t, edited(string(sums), names, migrations))
}

func TestS16EditedMigrationsAreFound(t *testing.T) {
	t.Parallel()
	names, steps := []string{"0001_a.sql", "0002_b.sql"}, []string{"a", "b"}
	const a = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  0001_a.sql\n"
	require.NoError(t, edited("# nothing\n", names[:1], steps[:1]))
	require.NoError(t, edited(a, names, steps))
	require.ErrorContains(t, edited(a, names, []string{"A", "b"}), "was edited")
	require.ErrorContains(t, edited(a, []string{"0001_c.sql", "0002_b.sql"}, steps), "was edited")
	require.ErrorContains(t, edited(a, nil, nil), "is gone")
	require.ErrorContains(t, edited("", names, steps), "0001_a.sql has no sum")
}

// S16: a database of each earlier version is brought to this build's. Of version 0 that is an
// empty one; of every other there is a dump of the space test-1, with jobs in it:
// pg_dump --inserts --no-owner --no-privileges -n quipu_test_1.
func TestS16EarlierSchemas(t *testing.T) {
	t.Parallel()
	for version := range migrations {
		dsn := devtest.Postgres(t)
		if version > 0 {
			dump, err := os.ReadFile(fmt.Sprintf("testdata/schemas/%04d.sql", version))
			require.NoError(t, err, "a migration has come after version %d: there must be a dump of it", version)
			c := must(pgconn.Connect(t.Context(), dsn))(t)
			_, err = c.Exec(t.Context(), string(dump)).ReadAll()
			require.NoError(t, errors.Join(err, c.Close(t.Context())))
		}
		require.NoError(t, openIn(t, dsn).checkSchema(t.Context(), false), "from version %d", version)
	}
}
