package postgres

import (
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

// Every statement prepares against a fresh schema, and says what it is for.
func TestStatementsPrepare(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	require.NoError(t, s.with(t.Context(), func(c *conn) error {
		for _, name := range slices.Sorted(maps.Keys(statements)) {
			text := statements[name]
			require.True(t, strings.HasPrefix(text, "-- "+name+": "), "%s begins with its name and contract", name)
			require.NoError(t, c.require(t.Context(), name))
			require.LessOrEqual(t, len(c.known[name].ParamOIDs), 12)
		}
		return nil
	}))
}

// A malformed file of statements stops the process.
func TestStatementFiles(t *testing.T) {
	t.Parallel()
	all := map[string]string{}
	require.NoError(t, split("-- name: a\n-- reads,\n-- by key.\nSELECT {wait:w}, {row param 3}\nFROM waits w\n\n-- name: b\nSELECT 1 -- not the contract\n", all))
	require.Equal(t, map[string]string{
		"a": "-- a: reads, by key.\nSELECT " + waitColumns.reads("w") + ", " + rowColumns.placeholder(3) + "\nFROM waits w\n",
		"b": "-- b:\nSELECT 1 -- not the contract\n",
	}, all)
	for text, why := range map[string]string{
		"SELECT 1":                         "before the first name",
		"-- name: a\nSELECT 2":             "a second statement a",
		"-- name: c\nSELECT {nothing}":     "no such list",
		"-- name: c\nSELECT {}":            "no such list",
		"-- name: c\nSELECT {row param}":   "neither names",
		"-- name: c\nSELECT {row param x}": "invalid syntax",
		"-- name: c\nSELECT {row set:d}":   "neither names",
	} {
		require.ErrorContains(t, split(text, all), why, text)
	}
}

// The forms in which a statement names a list of columns.
func TestLists(t *testing.T) {
	t.Parallel()
	l := listOf("some",
		digestOf("key", func(x *store.EffectRow) *journal.Digest { return &x.Key }).asKey(),
		boolOf("live", func(x *store.EffectRow) *bool { return &x.Live }).readAs("now()"),
		intOf("n", func(x *store.EffectRow) *int { return &x.N }),
		boolOf("vouched", func(x *store.EffectRow) *bool { return &x.Vouched }).readAs(""),
	)
	require.Equal(t, "key, n", l.names())
	require.Equal(t, "e.key, now(), e.n, e.vouched", l.reads("e"))
	require.Equal(t, "$3::in_some[]", l.placeholder(3))
	require.Equal(t, "n = w.n", l.sets("w"))
	require.Len(t, l.oids, 2)
	require.Equal(t, "e.n, now()", l.pick("few", "n", "live").reads("e"))
	require.Panics(t, func() { l.pick("none", "nothing") })
}

// types returns the numbers of the types of the written columns.
func (l list[T]) types() []uint32 { return l.oids }

// W4: the composite types of the schema equal the lists, column by column.
func TestTypesAreLists(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	written := map[string]string{}
	for _, text := range statements {
		for _, name := range regexp.MustCompile(`in_(\w+)\[\]`).FindAllStringSubmatch(text, -1) {
			written["in_"+name[1]] = lists[name[1]].names() + " " +
				fmt.Sprint(lists[name[1]].(interface{ types() []uint32 }).types())
		}
	}
	stored := map[string]string{}
	results := must(s.pool.Query(t.Context(), `SELECT t.typname::text, string_agg(a.attname, ', ' ORDER BY a.attnum) || ' ' ||
		replace(array_agg(a.atttypid::int8 ORDER BY a.attnum)::text, ',', ' ') FROM pg_type t
		JOIN pg_class c ON c.oid = t.typrelid AND c.relkind = 'c' JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE t.typnamespace = current_schema()::regnamespace GROUP BY 1`))(t)
	for results.Next() {
		var name, columns string
		require.NoError(t, results.Scan(&name, &columns))
		stored[name] = strings.NewReplacer("{", "[", "}", "]").Replace(columns)
	}
	require.NoError(t, results.Err())
	require.NotEmpty(t, stored)
	require.Equal(t, stored, written)
}

// explain returns the plan of a statement for any parameters. The tables are empty, so that only
// the statement leads to an index.
func explain(t *testing.T, c *conn, name string) []string {
	t.Helper()
	require.NoError(t, c.require(t.Context(), name))
	args := make([]string, len(c.known[name].ParamOIDs))
	for i := range args {
		args[i] = "NULL"
	}
	if strings.HasSuffix(name, "_tagged") {
		require.NoError(t, c.exec(t.Context(), "BEGIN; "+statements["bitmap"]))
		defer func() { require.NoError(t, c.exec(t.Context(), "COMMIT")) }()
	}
	require.NoError(t, c.exec(t.Context(), "PREPARE p AS "+statements[name]))
	results := must(c.pg.Exec(t.Context(), "EXPLAIN (COSTS OFF) EXECUTE p("+strings.Join(args, ",")+")").ReadAll())(t)
	require.NoError(t, c.exec(t.Context(), "DEALLOCATE p"))
	var lines []string
	for _, r := range results[0].Rows {
		lines = append(lines, strings.TrimSpace(string(r[0])))
	}
	return lines
}

// J2: no statement reads a whole table or index: each finds its rows by a condition on the first
// column of an index, and the index gives the order for oldest first. All that it knows of a key
// of the history is in the condition: it compares no rows. Sessions, partitions, keys and tokens are few.
func TestStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	require.NoError(t, s.with(t.Context(), func(c *conn) error {
		first := firstColumns(t, c)
		for _, name := range slices.Sorted(maps.Keys(statements)) {
			// a page from the end of the table; all that is open, once in the life of a database
			if !strings.Contains(statements[name], "$") || name == "letters" || name == "place_requests" {
				continue
			}
			lines := explain(t, c, name)
			plan := strings.Join(lines, "\n")
			if mentions(statements[name]) {
				require.NotRegexp(t, `Join Filter: .*\.(n|guid|request|chain|seq|key|activity|digest)\b`, plan, name)
			}
			require.NotContains(t, few.ReplaceAllString(plan, ""), "Seq Scan", name)
			require.NotContains(t, plan, "hashed", name)
			for i, line := range lines {
				if m := indexScan.FindStringSubmatch(line); m != nil && !slices.Contains(fewIndexes, m[1]) {
					require.Less(t, i+1, len(lines), "%s: %s", name, plan)
					require.Regexp(t, `^Index Cond: .*\W`+regexp.QuoteMeta(first[m[1]])+`\W`, lines[i+1], "%s reads an index whole:\n%s", name, plan)
				}
			}
		}
		return nil
	}))
}

// fewIndexes are indexes of tables with few rows.
var fewIndexes = []string{"partitions_pkey", "sessions_pkey", "tokens_name_key"}

// few matches scans of tables with few rows.
var few = regexp.MustCompile(`Seq Scan on (sessions|partitions|keys|topic_keys|traces|tokens)\b`)

// indexScan matches a scan by an index in a plan.
var indexScan = regexp.MustCompile(`Index (?:Only )?Scan (?:Backward )?using (\w+) on`)

// firstColumns returns the first columns of indexes.
func firstColumns(t *testing.T, c *conn) map[string]string {
	t.Helper()
	results := must(c.pg.Exec(t.Context(), "SELECT indexrelid::regclass, pg_get_indexdef(indexrelid, 1, true) FROM pg_index").ReadAll())(t)
	first := map[string]string{}
	for _, r := range results[0].Rows {
		first[string(r[0])] = string(r[1])
	}
	return first
}

// The statements whose cost could grow with the backlog, with waits of other keys, or with the
// length of a job.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	require.NoError(t, s.with(t.Context(), func(c *conn) error {
		for name, parts := range map[string][]string{
			"due":           {"Index Scan using dispatches_due", "Index Scan using jobs_pkey"},
			"claim":         {"Index Scan using dispatches_pkey", "Index Cond: ((job = w_1.job) AND (guid = w_1.guid))"},
			"late":          {"Index Scan using dispatches_within"},
			"load_all_rows": {"Index Scan using dispatches_pkey", "Index Scan using dispatches_sender"},
			"load_children": {"Index Scan using instances_0_n_idx"},
			"load_latest":   {"Index Cond: ((n = j.n) AND (activity = w.activity))"},
			"mail_due":      {"Index Scan using dispatches_mail"},
			"mail_rows":     {"Index Scan using dispatches_pkey"},
			"mail_waits":    {"Index Cond: ((mailbox = b.mailbox) AND (ROW(since, guid) > ROW(b.since, b.guid)))"},
			"pauses_of_request": {
				"Index Scan using resolved_waits_0_n_request_seq_idx", "Index Scan using entries_0_pkey", "Index Scan using dispatches_pkey",
			},
			"job_list":          {"Index Scan Backward using jobs_started"},
			"job_edge":          {"Index Only Scan Backward using jobs_started"},
			"job_edge_standing": {"Index Only Scan Backward using jobs_standing"},
			"job_list_standing": {
				"Index Scan Backward using jobs_standing",
				"Index Cond: ((flow_name = flows.name) AND ((state)::text = s.state) AND (ROW(started, id) < ROW($6, $7)) AND (ROW(started, id) >= ROW($5, $10)))",
			},
			"flows_failing":        {"Index Scan Backward using jobs_standing", "Index Cond: ((flow_name = flows.name) AND ((state)::text = 'failed'::text))"},
			"jobs_awaited":         {"Index Scan using dispatches_pkey", "Index Scan using waits_pkey", "Index Scan Backward using jobs_parent"},
			"gauge_lost":           {"Index Scan using dispatches_session", "Index Scan using dispatches_due"},
			"gauge_jobs":           {"Index Only Scan using jobs_standing"},
			"job_list_children":    {"Index Scan Backward using jobs_parent", "Index Cond: ((parent_job = $12) AND (ROW(started, id) < ROW($6, $7)) AND (ROW(started, id) >= ROW($5, $10)))"},
			"job_counted":          {"Index Scan Backward using jobs_started"},
			"job_counted_tagged":   {"Bitmap Index Scan on jobs_tags"},
			"job_list_tagged":      {"Bitmap Index Scan on jobs_tags"},
			"job_counted_children": {"Index Scan Backward using jobs_parent", "Index Cond: ((parent_job = $12) AND (ROW(started, id) < ROW($6, $7)) AND (ROW(started, id) >= ROW($5, $10)))"},
			"expire_mark":          {"Index Scan using jobs_expires"},
			"traces_ended":         {"Index Scan using jobs_closed", "Index Cond: (ROW(closed, id) > ROW($1, $2))"},
			"expire_floor":         {"Index Scan using jobs_expires"},
			"expire_end":           {"Index Scan using jobs_expires"},
			"retire_live":          {"Index Scan using jobs_n_key"},
			"retire_jobs":          {"Index Scan using jobs_n_key"},
			"effects_by_key":       {"Index Cond: (((n >> 16) = g.part) AND (key = $1))"},
			"effects_past":         {"Index Cond: ((n = a.n) AND (key = w.key))"},
			"load_effects":         {"Index Cond: ((n = j.n) AND (request = w.request))"},
			"prune":                {"Index Scan using batches_at", "Index Scan using signals_at"},
		} {
			plan := strings.Join(explain(t, c, name), "\n")
			for _, part := range parts {
				require.Contains(t, plan, part, name)
			}
			if name == "retire_jobs" { // in the order of the index: the partition is not sorted
				require.NotContains(t, plan, "Sort", plan)
			}
			if name != "load_all_rows" && name != "load_row_locks" { // its rows are locked in order
				require.NotContains(t, plan, "Sort Key: d.", name)
			}
		}
		return nil
	}))
}
