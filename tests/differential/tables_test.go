package differential

import (
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/wire"
)

// columns are what memory.Store.Tables gives of each table, in its order. Left out
// are the markers of batches, which each store needs in its own way, and what only
// Postgres has: partitions, the raw message of a dead letter, the trigger of a job and whether an
// instance is of a join, which only its checks look at. An entry's bytes are in its
// hash; the pauses of a row come with each Load.
var columns = map[string]string{
	"jobs": `id, key, generation, flow_name, flow_version, flow_digest, state, semaphore, head_seq, head_hash, closed_seq, tasks_seq,
		started, closed, trace, expires_at, parent_space, parent_job, parent_activity, parent_dad, parent_leg1, parent_turn, parent_awaited, next`,
	"tombstones": `id, key, generation, flow_name, flow_version, head_seq, head_hash, closed, expires_at`,
	"instances":  `job, activity, dad_text, ledger, result_seq, code, leg1, open, count, size, turn, attempt, child`,
	"receipts":   `job, guid, ledger, verdict, seq`,
	"entries":    `job, chain, seq, hash`,
	"dispatches": `guid, job, kind, activity, dad, topic, element, body, next_at, held, dead, publication, published_at, turn, turn_sent,
		attempt, runs, holder, session, fence, within_at, effects_seq, effects_hash, origin, sender, undo, input`,
	"waits":          `job, guid, mailbox, activity, dad, topic, key, repeat, max_age, count, since, origin, request`,
	"resolved_waits": `job, request, guid, kind, name, position, seq`,
	"signals":        `guid, state, at`,
	"effects": `job, key, request, seq, name, class, not_done, state, result, error, fence, holder, CASE WHEN state = 'started' THEN turn END,
		CASE WHEN state = 'started' THEN until END, position, vouched`,
	"payloads":     `job, digest, body`,
	"dead_letters": `id, job, guid, kind, activity, dad, reason, message, ledger, stray, at, state`,
	"sessions":     `id, name, lease, renewed_at, since, dead`,
	"flows":        `name, version, digest, definition, active, deployed, CASE WHEN active THEN scheduled END`,
}

// byJob has the tables of the jobs' history seen with the job of each row, on one
// connection: they are keyed by a number that only Postgres has (W10).
func byJob() string {
	var b strings.Builder
	for _, table := range []string{"entries", "receipts", "instances", "effects", "payloads", "resolved_waits"} {
		fmt.Fprintf(&b, `CREATE TEMPORARY VIEW %[1]s AS SELECT *, (SELECT j.id FROM jobs j WHERE j.n = x.n
			UNION ALL SELECT t.id FROM tombstones t WHERE t.n = x.n) AS job FROM %[1]s x;`, table)
	}
	return b.String()
}

// tables holds every row of both stores to each other.
func (w *twin) tables(after string) {
	w.Helper()
	var pg, mem []string
	names := slices.Sorted(maps.Keys(columns))
	batch := &pgx.Batch{}
	for _, name := range names {
		batch.Queue("SELECT " + columns[name] + " FROM " + name)
	}
	w.memory.Tables(func(table string, values ...any) {
		if mem = append(mem, w.line(table, values)); table == "dead_letters" {
			w.letter = max(w.letter, values[0].(int64))
		}
	})
	batch.Queue("SELECT setval('dead_letters_id_seq', $1, false)", w.letter+1)
	r := w.db.raw.SendBatch(w.ctx, batch)
	for _, name := range names {
		rows, err := r.Query()
		require.NoError(w, err)
		for rows.Next() {
			values, err := rows.Values()
			require.NoError(w, err)
			pg = append(pg, w.line(name, values))
		}
		require.NoError(w, rows.Err())
	}
	require.NoError(w, r.Close())
	slices.Sort(pg)
	slices.Sort(mem)
	if !slices.Equal(pg, mem) {
		w.Fatalf("after %s the rows differ (- postgres, + memory):\n%s", after, gocmp.Diff(pg, mem))
	}
}

// line spells a row out: what is null, zero or empty is left out.
func (w *twin) line(table string, values []any) string {
	names := w.db.columns[table]
	require.Len(w, values, len(names), "columns of %s", table)
	var b strings.Builder
	b.WriteString(table)
	for i, v := range values {
		if text := spell(v); text != "" {
			b.WriteString(" " + names[i] + "=" + text)
		}
	}
	return b.String()
}

// spell writes a value of a column, in the form in which Postgres keeps it.
func spell(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case *journal.Failure:
		if x == nil {
			return ""
		}
		return spell(wire.Encode(wire.FromJournal(&journal.Response{Error: x}).Error))
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Array, reflect.Slice:
		if r.IsZero() || r.Len() == 0 {
			return ""
		}
		bytes := make([]byte, r.Len())
		reflect.Copy(reflect.ValueOf(bytes), r)
		return text(bytes)
	case reflect.Bool:
		if r.Bool() {
			return "yes"
		}
		return ""
	case reflect.String:
		return r.String()
	default:
		if r.IsZero() {
			return ""
		}
		return fmt.Sprintf("%d", v)
	}
}

func text(b []byte) string {
	if len(b) != 16 && len(b) != 32 && utf8.Valid(b) {
		return fmt.Sprintf("%q", b)
	}
	return hex.EncodeToString(b)
}
