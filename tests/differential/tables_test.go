package differential

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/wire"
)

// columns are what memory.Store.Tables gives of each table, in its order. Left out
// are the markers of batches, which each store needs in its own way, and what only
// Postgres has: ids that it gives out, the raw message of a letter, the trigger of a
// job and whether an instance is of a join, which only its checks look at. An entry's
// bytes are in its hash.
var columns = map[string]string{
	"jobs": `id, key, generation, flow_name, flow_version, flow_digest, state, semaphore, head_seq, head_hash, closed_seq, tasks_seq,
		started, closed, trace, expires_at, parent_space, parent_job, parent_activity, parent_dad, parent_leg1, parent_turn, parent_awaited`,
	"tombs":     `id, key, generation, head_seq, head_hash, closed, expires_at, at`,
	"instances": `job, activity, dad_text, ledger, result_seq, code, leg1, open, count, size, turn, try, child`,
	"receipts":  `job, guid, ledger, verdict, seq`,
	"entries":   `job, chain, seq, hash`,
	"dispatches": `guid, job, kind, activity, dad, topic, element, body, next_at, held, dead, publication, published_at, turn, turn_sent,
		try, runs, holder, lease_until, fence, within_at, effects_seq, effects_hash, origin, sender, pauses, undo, input`,
	"waits":   `job, guid, mailbox, activity, dad, topic, key, repeat, max_age, count, since, origin, request`,
	"woken":   `job, request, guid, kind, name, position, seq`,
	"signals": `guid, state, at`,
	"effects": `job, key, request, seq, name, class, n, state, result, error, fence, holder, CASE WHEN state = 'started' THEN turn END,
		CASE WHEN state = 'started' THEN until END, position, vouched`,
	"payloads":     `job, digest, body`,
	"dead_letters": `job, guid, kind, activity, dad, reason, message, ledger, at, state`,
	"flows":        `name, version, digest, definition, active, deployed, CASE WHEN active THEN scheduled END`,
}

// uncompared is the table that is left out.
const uncompared = "batches"

// tables holds every row of both stores to each other.
func (p *pair) tables(after string) {
	p.Helper()
	var pg, mem []string
	names := sorted(columns)
	batch := &pgx.Batch{}
	for _, name := range names {
		batch.Queue("SELECT " + columns[name] + " FROM " + name)
	}
	r := p.db.raw.SendBatch(p.ctx, batch)
	for _, name := range names {
		rows, err := r.Query()
		require.NoError(p, err)
		for rows.Next() {
			values, err := rows.Values()
			require.NoError(p, err)
			pg = append(pg, p.line(name, values))
		}
		require.NoError(p, rows.Err())
	}
	require.NoError(p, r.Close())
	p.memory.Tables(func(table string, values ...any) { mem = append(mem, p.line(table, values)) })
	slices.Sort(pg)
	slices.Sort(mem)
	if !slices.Equal(pg, mem) {
		p.differ("after %s the rows differ:%s", after, differences(pg, mem))
	}
}

// line spells a row out: what is null, zero or empty is left out.
func (p *pair) line(table string, values []any) string {
	names := p.db.columns[table]
	require.Len(p, values, len(names), "columns of %s", table)
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
	case []collation.Pause:
		return spell(pausesOf(x))
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

// pausesOf is the column of pauses in Postgres.
func pausesOf(list []collation.Pause) []byte {
	type stored struct {
		Kind     journal.PauseKind `json:"kind"`
		Name     string            `json:"name"`
		Position string            `json:"position"`
		GUID     string            `json:"guid"`
		Timeout  bool              `json:"timeout,omitempty"`
		Taken    bool              `json:"taken,omitempty"`
		Came     bool              `json:"came,omitempty"`
	}
	if len(list) == 0 {
		return nil
	}
	out := make([]stored, len(list))
	for i := range list {
		x := &list[i]
		out[i] = stored{x.Kind, x.Name, x.Position, x.GUID.String(), x.Timeout, x.Taken, x.Came}
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err) // strings and booleans
	}
	return b
}
