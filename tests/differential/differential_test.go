package differential

import (
	"cmp"
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
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
	for name, value := range map[string]string{"rapid.checks": cmp.Or(os.Getenv(sequences), few), "rapid.steps": steps} {
		if err := flag.Set(name, value); err != nil { // a flag of the command line is set after it
			panic(err)
		}
	}
	devtest.Main(m)
}

// process is the one whose session the effects' runs are of.
var process = store.Process{Name: "p", Lease: time.Minute}

// openDatabase opens a space in Postgres whose clock is a row of a table, and which has the session
// of the process.
func openDatabase(t *testing.T) (store.Store, *pgx.Conn) {
	t.Helper()
	ctx := t.Context()
	dsn := devtest.Postgres(t)
	raw, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = raw.Close(context.WithoutCancel(ctx)) })
	_, err = raw.Exec(ctx, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`)
	require.NoError(t, err)
	pg, err := postgres.Open(ctx, postgres.Config{DSN: dsn, Space: space, Migrating: true})
	require.NoError(t, err)
	s := &journaltest.Thrifty{Store: pg}
	t.Cleanup(s.Close)
	require.NoError(t, s.Migrate(ctx))
	x, err := s.OpenSession(ctx, process)
	require.NoError(t, err)
	t.Cleanup(func() { _ = x.End(context.WithoutCancel(ctx)) })
	_, err = raw.Exec(ctx, `SET search_path TO quipu_both; CREATE SCHEMA test; CREATE TABLE test.clock (at bigint NOT NULL); INSERT INTO test.clock VALUES (0);
		CREATE OR REPLACE FUNCTION micros() RETURNS bigint LANGUAGE sql VOLATILE RETURN (SELECT at FROM test.clock)`)
	require.NoError(t, err)
	return s, raw
}

// filled are the tables that a sequence fills.
var filled = strings.Fields("jobs tombstones instances receipts entries dispatches waits resolved_waits signals effects payloads dead_letters flows")

// newTwin empties the database, and draws the mode of both stores' decisions.
func newTwin(ctx context.Context, t *rapid.T, pg store.Store, raw *pgx.Conn) *twin {
	w := &twin{Store: pg, T: t, ctx: ctx, raw: raw, clock: 1_700_000_000_000_000, flows: map[string]*flow.Flow{}, written: map[journal.JobID]bool{}}
	_, err := raw.Exec(ctx, "DELETE FROM "+strings.Join(filled, "; DELETE FROM ")+
		"; UPDATE space SET floor = 0; SELECT setval('dead_letters_id_seq', 1, false)")
	require.NoError(t, err)
	w.memory = memory.New(memory.Config{Space: space, Now: func() int64 { return w.clock }})
	w.advance(0)
	x, err := w.memory.OpenSession(ctx, process)
	require.NoError(w, err)
	w.mode = collation.Mode{
		Session: x.ID(), Stepwise: w.chance("stepwise", 30), Fold: w.chance("fold", 40), Resend: pick(w, "resend", collation.Never, 30_000_000),
	}
	return w
}

// advance moves the clock of both stores.
func (w *twin) advance(by time.Duration) {
	w.clock += by.Microseconds()
	_, err := w.raw.Exec(w.ctx, "UPDATE test.clock SET at = $1", w.clock)
	require.NoError(w, err)
}

// Postgres and memory give the same rows and the same errors, whatever they are
// asked for (the contract of journal/store).
func TestStoresAgree(t *testing.T) {
	t.Parallel()
	pg, raw := openDatabase(t)
	begun, played := time.Now(), 0
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay it, with the seed that is printed above: go test ./tests/differential -run '^%s$' -rapid.seed=<seed>", t.Name())
		}
		t.Logf("%d sequences of about %s calls, in %v; a difference: %t", played, steps, time.Since(begun).Round(time.Second), t.Failed())
	})
	rapid.Check(t, func(r *rapid.T) {
		played++
		newTwin(t.Context(), r, pg, raw).sequence()
	})
}

// sequence draws calls, and holds the stores to each other.
func (w *twin) sequence() {
	for _, source := range flows {
		w.deploy(flow.Parse("flow.yaml", []byte(source)))
	}
	for _, topic := range []string{"t.work", "t.fun", "t.each", "t.kid"} {
		w.deploy(flow.Undo(topic))
	}
	w.start()
	calls := slices.Concat(
		slices.Repeat([]func(*twin){(*twin).work}, 14), slices.Repeat([]func(*twin){(*twin).effect}, 5),
		slices.Repeat([]func(*twin){(*twin).again, (*twin).signal, (*twin).start, (*twin).operate, (*twin).late}, 2),
		[]func(*twin){(*twin).pass, (*twin).expire},
	)
	w.Repeat(map[string]func(*rapid.T){"step": func(t *rapid.T) {
		defer func(outer *rapid.T) { w.T = outer }(w.T)
		w.T = t
		w.advance(pick[time.Duration](w, "passes", 1, 1, 1000, 1_000_000) * time.Microsecond)
		pick(w, "call", calls...)(w)
		w.tables()
	}})
}

// pass lets much time pass.
func (w *twin) pass() {
	w.advance(pick[time.Duration](w, "long", 60, 3600, 90_000, 31*86_400) * second)
}
