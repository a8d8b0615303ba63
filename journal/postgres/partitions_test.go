package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// nextIn makes the next job that is kept for good begin in a partition.
func nextIn(t testing.TB, s *Store, p int) {
	t.Helper()
	require.NoError(t, s.run(t, fmt.Sprintf("SELECT setval('numbers_never', %d, false)", p*partitionJobs+1)))
}

// partitions returns how many partitions each table has.
func partitions(t testing.TB, s *Store) int {
	t.Helper()
	n := s.rows(t, "partitions")
	for _, table := range historyTables {
		require.Equal(t, n, s.rows(t, fmt.Sprintf("pg_inherits WHERE inhparent = '%s'::regclass", table)), table)
	}
	return n
}

// spread starts a job in each of ten partitions. Two more exist, and three of other classes.
func spread(t testing.TB, s *Store) []journal.JobID {
	t.Helper()
	var ids []journal.JobID
	for p := range 10 {
		nextIn(t, s, p)
		ids = append(ids, startJobs(t, s, fmt.Sprint("in-", p))...)
		require.NoError(t, s.Extend(t.Context()))
	}
	return ids
}

// W10: each class of retention has a partition; a class with jobs has two beyond that of its
// newest one.
func TestExtend(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	require.Equal(t, 4, partitions(t, s))
	startJobs(t, s, "first")
	require.NoError(t, s.Extend(t.Context()))
	require.Equal(t, 6, partitions(t, s))
	require.NoError(t, s.Extend(t.Context()))
	require.Equal(t, 6, partitions(t, s))
	nextIn(t, s, 1)
	startJobs(t, s, "second")
	require.NoError(t, s.Extend(t.Context()))
	require.NoError(t, s.Extend(t.Context()))
	require.Equal(t, 7, partitions(t, s))
	nextIn(t, s, 3)
	startJobs(t, s, "third")
	require.NoError(t, s.Migrate(t.Context()))
	require.Equal(t, 9, partitions(t, s))
}

// The storage of every table's partitions is as listed: a partition does not inherit its table's.
func TestPartitionsAreStored(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for table, options := range map[string]string{
		"entries":   "{fillfactor=100,toast_tuple_target=4096}",
		"receipts":  "{fillfactor=80,autovacuum_vacuum_scale_factor=0.05}",
		"instances": "{fillfactor=50,autovacuum_vacuum_scale_factor=0.05}",
		"effects":   "{fillfactor=55}",
	} {
		require.Equal(t, 4, s.rows(t, fmt.Sprintf(`pg_inherits JOIN pg_class c ON c.oid = inhrelid
			WHERE inhparent = '%s'::regclass AND c.reloptions::text = '%s'`, table, options)), table)
	}
	require.Equal(t, 4, s.rows(t, `pg_inherits JOIN pg_attribute ON attrelid = inhrelid
		WHERE inhparent = 'entries'::regclass AND attname = 'body' AND attstorage = 'e'`))
}

// W10: without a partition nothing is written or decided again. The error says what to do; after
// that the same start succeeds.
func TestNoPartition(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	nextIn(t, s, 3)
	_, err := s.driven().Start(t.Context(), keyed("k"), resend)
	require.ErrorIs(t, err, store.ErrPartition)
	require.ErrorContains(t, err, "quipu migrate")
	for _, other := range decisions {
		require.Equal(t, other == store.ErrPartition, errors.Is(err, other), "%v", other)
	}
	require.Zero(t, s.rows(t, "jobs"))
	require.NoError(t, s.Migrate(t.Context()))
	startJobs(t, s, "k")
}

// W10: a login without the rights of the tables' owner gets an error that names the owner.
func TestExtendNeedsTheOwner(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "extend" })
	require.NoError(t, s.Roles(t.Context()))
	engine := as(t, s, "engine")
	require.NoError(t, engine.Extend(t.Context()), "nothing is missing")
	id := startJobs(t, engine, "k")[0]
	err := engine.Extend(t.Context())
	require.ErrorIs(t, err, store.ErrPartition)
	require.ErrorIs(t, err, store.ErrOwner)
	require.ErrorContains(t, err, "quipu migrate")
	require.NotContains(t, err.Error(), store.ErrPartition.Error(), "there is room for new jobs yet")
	startJobs(t, engine, "k2")
	require.ErrorContains(t, engine.Migrate(t.Context()), "QUIPU_NO_MIGRATE")
	require.NoError(t, s.Extend(t.Context()))
	require.NoError(t, engine.Extend(t.Context()))
	nextIn(t, s, 2)
	later := startJobs(t, engine, "l")[0]
	for _, role := range []string{"engine", "verifier"} { // who has a right on the table has it on the new partitions
		for _, id := range []journal.JobID{id, later} {
			require.Equal(t, 1, as(t, s, role).rows(t, fmt.Sprintf("receipts JOIN jobs USING (n) WHERE id = '%s'", id)), role)
		}
	}
}

// leaf is a scan of a partition in a plan.
var leaf = regexp.MustCompile(`Scan .*on (` + strings.Join(historyTables, "|") + `)_(\d+)\b`)

// W10: every statement finds rows of the history by n with an index, so that it reads only the
// partition of its job.
func TestStatementsReadOnePartition(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	ids := spread(t, s)
	require.Equal(t, 15, partitions(t, s))
	read := 0
	require.NoError(t, s.with(t.Context(), func(c *conn) error {
		for _, name := range slices.Sorted(maps.Keys(statements)) {
			if !mentions(statements[name]) || name == "effects_by_key" { // asks each of them for its part
				continue
			}
			lines := explain(t, c, name)
			for i, line := range lines {
				if m := leaf.FindStringSubmatch(line); m != nil {
					require.Regexp(t, `^Index Cond: \(*n = `, lines[i+1], "%s:\n%s", name, strings.Join(lines, "\n"))
				}
			}
			lines, failed := perform(t, c, name, ids[5], 5*partitionJobs+1)
			if failed { // a test-and-set that lost says so
				continue
			}
			for _, line := range lines {
				m := leaf.FindStringSubmatch(line)
				switch {
				case m == nil || strings.Contains(line, "(never executed)"):
				case m[2] == "5":
					read++
				default:
					require.Fail(t, "it reads the partition of another job", "%s:\n%s", name, strings.Join(lines, "\n"))
				}
			}
		}
		return nil
	}))
	require.Greater(t, read, 25)
}

// mentions reports whether a statement names a partitioned table.
func mentions(text string) bool {
	return slices.ContainsFunc(historyTables, func(table string) bool {
		return regexp.MustCompile(`(FROM|JOIN|UPDATE|INTO) ` + table + `\b`).MatchString(text)
	})
}

// elements maps the types of arrays to those of their elements.
var elements = map[uint32]uint32{1000: oidBool, 1001: oidBytea, 1016: oidInt8, 1009: oidText, 2951: oidUUID}

// perform runs a statement with values of an existing job, and rolls it back.
func perform(t *testing.T, c *conn, name string, id journal.JobID, n int64) (lines []string, failed bool) {
	t.Helper()
	require.NoError(t, c.require(t.Context(), name))
	args := make([]string, len(c.known[name].ParamOIDs))
	for i, oid := range c.known[name].ParamOIDs {
		args[i] = map[uint32]string{
			oidUUID: "'" + id.String() + "'::uuid", oidBytea: "sha256('')", oidText: "'start'", oidInt8: fmt.Sprint(n), oidBool: "true",
		}[cmp.Or(elements[oid], oid)]
		if elements[oid] != 0 {
			args[i] = "ARRAY[" + args[i] + "]"
		}
	}
	require.NoError(t, c.exec(t.Context(), "BEGIN; PREPARE p AS "+statements[name]))
	results, err := c.pg.Exec(t.Context(), "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE p("+strings.Join(args, ",")+")").ReadAll()
	require.NoError(t, c.exec(t.Context(), "ROLLBACK; DEALLOCATE p"))
	if err != nil {
		return nil, true
	}
	for _, r := range results[0].Rows {
		lines = append(lines, strings.TrimSpace(string(r[0])))
	}
	return lines, false
}

// W10: a write to the history of a job that does not exist is an error, like a lost test-and-set.
// The row is not just left out.
func TestRowsOfNoJob(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	require.NoError(t, s.with(t.Context(), func(c *conn) error {
		for _, name := range []string{
			"write_entries", "write_receipts_new", "write_instances_new", "write_resolved", "effects_new", "payloads_put",
			"write_receipts", "write_receipts_gone", "write_instances", "effects_move", "effects_judged",
		} {
			require.NoError(t, c.require(t.Context(), name))
			params := make([][]byte, len(c.known[name].ParamOIDs))
			for i, oid := range c.known[name].ParamOIDs {
				if oid == oidInt8 {
					params[i] = pInt(int64(i)) // of a span
					continue
				}
				null := newColumn(elements[oid], 1, 1)
				if null.null(); i == 0 {
					null = uuids(1)
					null.uuid(journal.JobID{1})
				}
				switch params[i] = null.value(); {
				case name == "write_entries":
					params[i] = recorded(entryColumns, &entryWrite{job: journal.JobID{1}})
				case name == "write_instances", name == "write_instances_new":
					params[i] = recorded(placedColumns, (&instanceWrite{job: journal.JobID{1}}).placed())
				case elements[oid] == 0:
					params[i] = recorded(effectColumns, &store.EffectRow{})
				}
			}
			require.ErrorIs(t, classify(name, c.query(t.Context(), name, nil, params...)), store.ErrLost, name)
		}
		return nil
	}))
}

// recorded is an array parameter with x alone.
func recorded[T any](l list[T], x *T) []byte {
	return arrays([]*T{x}, func(c *columns, x *T) { record(c, l, x) })[0]
}
