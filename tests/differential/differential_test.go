package differential

import (
	"cmp"
	"context"
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/memory"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/journal/store"
)

const space = "both"

// sequences names the variable that says how many are drawn instead of few.
const sequences = "QUIPU_DIFFERENTIAL"

// few is how many sequences are drawn where nobody says; steps is how many calls a
// sequence has on the average, not counting those that follow from another.
const (
	few   = "16"
	steps = "60"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": cmp.Or(os.Getenv(sequences), few), "rapid.steps": steps} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	devtest.Main(m)
}

// database is a space in Postgres whose clock is a row of a table. It is emptied
// for each sequence.
type database struct {
	store   store.Store
	raw     *pgx.Conn
	columns map[string][]string // names of those that are compared, by table
}

func openDatabase(t *testing.T) *database {
	t.Helper()
	ctx := t.Context()
	dsn := devtest.Postgres(t)
	raw, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = raw.Close(context.WithoutCancel(ctx)) })
	_, err = raw.Exec(ctx, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`)
	require.NoError(t, err)
	s, err := postgres.Open(ctx, postgres.Config{DSN: dsn, Space: space, Migrating: true})
	require.NoError(t, err)
	db := &database{store: &journaltest.Thrifty{Store: s}, raw: raw, columns: map[string][]string{}}
	t.Cleanup(db.store.Close)
	require.NoError(t, s.Migrate(ctx))
	_, err = raw.Exec(ctx, `SET search_path TO quipu_both; CREATE SCHEMA test; CREATE TABLE test.clock (at bigint NOT NULL); INSERT INTO test.clock VALUES (0);
		CREATE OR REPLACE FUNCTION micros() RETURNS bigint LANGUAGE sql VOLATILE RETURN (SELECT at FROM test.clock);`+byJob())
	require.NoError(t, err)
	rows, err := raw.Query(ctx, `SELECT relname::text FROM pg_class WHERE relnamespace = 'quipu_both'::regnamespace
		AND relkind IN ('r', 'p') AND NOT relispartition AND relname NOT IN ('space', 'space_entries', 'worker_topics', 'batches', 'partitions', 'keys', 'topic_keys', 'traces', 'tokens')`)
	require.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Len(t, tables, len(columns), "every table is compared")
	for _, name := range tables {
		rows, err := raw.Query(ctx, "SELECT "+columns[name]+" FROM "+name+" LIMIT 0")
		require.NoError(t, err)
		for _, f := range rows.FieldDescriptions() {
			db.columns[name] = append(db.columns[name], f.Name)
		}
		rows.Close()
	}
	return db
}

// newTwin empties the database and draws the stores' mode.
func newTwin(ctx context.Context, t *rapid.T, db *database) *twin {
	w := &twin{Store: db.store, T: t, ctx: ctx, db: db, clock: 1_700_000_000_000_000, flows: map[string]*flow.Flow{}}
	batch := &pgx.Batch{}
	for name := range columns {
		batch.Queue("DELETE FROM " + name)
	}
	batch.Queue("UPDATE space SET floor = 0")
	batch.Queue("SELECT setval(pg_get_serial_sequence('sessions', 'id'), 1, false)")
	require.NoError(t, db.raw.SendBatch(ctx, batch).Close())
	w.memory = memory.New(memory.Config{Space: space, Now: func() int64 { return w.clock }})
	w.advance(0)
	w.mode = collation.Mode{Stepwise: w.chance("stepwise", 30), Fold: w.chance("fold", 40), Resend: pick(w, "resend", collation.Never, 30_000_000)}
	return w
}

// advance moves the clock of both stores.
func (w *twin) advance(by time.Duration) {
	w.clock += by.Microseconds()
	_, err := w.db.raw.Exec(w.ctx, "UPDATE test.clock SET at = $1", w.clock)
	require.NoError(w, err)
}

// Postgres and memory give the same rows and the same errors, whatever they are
// asked for (the contract of journal/store).
func TestStoresAgree(t *testing.T) {
	t.Parallel()
	db := openDatabase(t)
	begun, played := time.Now(), 0
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay it, with the seed that is printed above: go test ./tests/differential -run '^%s$' -rapid.seed=<seed>", t.Name())
		}
		t.Logf("%d sequences of about %s calls, in %v; a difference: %t", played, steps, time.Since(begun).Round(time.Second), t.Failed())
	})
	rapid.Check(t, func(r *rapid.T) {
		played++
		newTwin(t.Context(), r, db).sequence()
	})
}

// sequence draws calls, and holds the stores to each other.
func (w *twin) sequence() {
	f, err := flow.Parse("kid.yaml", []byte(kid))
	require.NoError(w, err)
	w.deploy(f)
	for _, topic := range []string{"t.work", "t.fun", "t.each", "t.kid"} {
		f, err := flow.Undo(topic)
		require.NoError(w, err)
		w.deploy(f)
	}
	w.define("first")
	w.define("second")
	w.start()
	calls := slices.Concat(
		slices.Repeat([]func(*twin){(*twin).work}, 14), slices.Repeat([]func(*twin){(*twin).worker}, 6),
		slices.Repeat([]func(*twin){(*twin).again, (*twin).signal, (*twin).sweep, (*twin).start, (*twin).operate, (*twin).falsify, (*twin).process}, 2),
		[]func(*twin){(*twin).interrupt, (*twin).pass},
	)
	w.Repeat(map[string]func(*rapid.T){"step": func(t *rapid.T) {
		defer func(outer *rapid.T) { w.T = outer }(w.T)
		w.T = t
		w.advance(pick[time.Duration](w, "passes", 1, 1, 1000, 1_000_000) * time.Microsecond)
		pick(w, "call", calls...)(w)
	}})
}

// pass lets much time pass.
func (w *twin) pass() {
	w.advance(pick[time.Duration](w, "long", 60, 3600, 90_000, 31*86_400) * second)
}
