package differential

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"iter"
	"maps"
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
	few   = "4"
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

// newTwin empties the database and draws the stores' mode. falsify, if any, gives what
// takes the place of the memory store.
func newTwin(ctx context.Context, t *rapid.T, db *database, falsify func(store.Store) store.Store) *twin {
	w := &twin{Store: db.store, T: t, ctx: ctx, db: db, clock: 1_700_000_000_000_000, flows: map[string]*flow.Flow{}}
	batch := &pgx.Batch{}
	for name := range columns {
		batch.Queue("DELETE FROM " + name)
	}
	batch.Queue("UPDATE space SET floor = 0")
	batch.Queue("SELECT setval(pg_get_serial_sequence('sessions', 'id'), 1, false)")
	require.NoError(t, db.raw.SendBatch(ctx, batch).Close())
	w.memory = memory.New(memory.Config{Space: space, Now: func() int64 { return w.clock }})
	if w.other = w.memory; falsify != nil {
		w.wrong, w.other = true, falsify(w.memory)
	}
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
		newTwin(t.Context(), r, db, nil).sequence(nil)
	})
}

// sequence draws calls, every second one of often, if any, and holds the stores to
// each other.
func (w *twin) sequence(often func(*twin)) {
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
		[]func(*twin){(*twin).interrupt, (*twin).pass, (*twin).views},
	)
	w.Repeat(map[string]func(*rapid.T){"step": func(t *rapid.T) {
		defer func(outer *rapid.T) { w.T = outer }(w.T)
		w.T = t
		w.advance(pick[time.Duration](w, "passes", 1, 1, 1000, 1_000_000) * time.Microsecond)
		if often != nil && w.chance("often", 50) {
			often(w)
			return
		}
		pick(w, "call", calls...)(w)
	}})
	w.views()
}

// pass lets much time pass.
func (w *twin) pass() {
	w.advance(pick[time.Duration](w, "long", 60, 3600, 90_000, 31*86_400) * second)
}

// stored is all that Audit gives of a job.
type stored struct {
	Tables  *store.Stored
	Beside  []journal.Beside
	Records []journal.Record
}

// views holds to each other what is stored of each job. Lists are held to what they should have by
// the suite of the stores.
func (w *twin) views() {
	ctx := w.ctx
	w.due()
	dead := store.DeadFilter{All: w.chance("all", 50), Limit: store.MaxPage}
	_, _ = read(w, "letters", func(s store.Store) ([]store.DeadView, error) { return s.DeadLetters(ctx, dead) })
	ids, err := read(w, "audited jobs", func(s store.Store) (out []journal.JobID, err error) {
		for id, err := range s.AuditJobs(ctx, nil) {
			if err != nil {
				return nil, err
			}
			out = append(out, id)
		}
		return out, nil
	})
	require.NoError(w, err)
	for _, id := range append(ids, journal.JobID{8: 9}) {
		w.view(id)
	}
	w.tables("views")
}

func (w *twin) view(id journal.JobID) {
	ctx, ids := w.ctx, []journal.JobID{id}
	v, _ := read(w, "job", func(s store.Store) (*store.JobView, error) { return s.Job(ctx, id) })
	_, _ = read(w, "audit", func(s store.Store) (out stored, err error) {
		err = s.Audit(ctx, id, func(tables *store.Stored, records iter.Seq2[journal.Record, error]) (err error) {
			if out.Tables = tables; tables.Beside != nil {
				out.Beside, err = collect(tables.Beside, func(x *journal.Beside) *[]byte { return &x.Body })
			}
			if tables.Beside = nil; err != nil { // a function; what it yields is compared
				return err
			}
			out.Records, err = collect(records, func(r *journal.Record) *[]byte { return &r.Body })
			return err
		})
		return out, err
	})
	_, _ = read(w, "outcomes", func(s store.Store) (map[journal.JobID]store.Outcome, error) { return s.Outcomes(ctx, ids) })
	_, _ = read(w, "effects of job", func(s store.Store) ([]store.JobEffect, error) { return s.JobEffects(ctx, id) })
	for i := 0; v != nil && i < len(v.Rows); i++ {
		r := &v.Rows[i]
		_, _ = read(w, "pauses", func(s store.Store) ([]store.Pause, error) { return s.Pauses(ctx, r.Job, r.GUID) })
	}
}

// collect reads a sequence, with copies of its bytes.
func collect[T any](seq iter.Seq2[T, error], body func(*T) *[]byte) (all []T, err error) {
	for x, err := range seq {
		if err != nil {
			return nil, err
		}
		b := body(&x)
		*b = slices.Clone(*b)
		all = append(all, x)
	}
	return all, nil
}

// falsified takes the place of the memory store and does one thing wrong: to what it loads, or to
// the plans that it commits.
type falsified struct {
	store.Store
	load   func(*store.Loaded)
	commit func(context.Context, store.Committer, []store.Chained) error
}

func (s falsified) Committer(ctx context.Context, patient bool) (store.Committer, error) {
	c, err := s.Store.Committer(ctx, patient)
	return falsifier{c, s}, err
}

type falsifier struct {
	store.Committer
	s falsified
}

func (c falsifier) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	l, err := c.Committer.Load(ctx, wants, wait)
	if err == nil && c.s.load != nil {
		c.s.load(l)
	}
	return l, err
}

func (c falsifier) Commit(ctx context.Context, plans []store.Chained) error {
	if c.s.commit != nil {
		return c.s.commit(ctx, c.Committer, plans)
	}
	return c.Committer.Commit(ctx, plans)
}

var wrongs = map[string]struct {
	falsified
	often func(*twin) // what asks for it
}{
	"a known signal is not known": {falsified{load: func(l *store.Loaded) { clear(l.Known) }}, (*twin).signal},
	"a row stays": {falsified{commit: func(ctx context.Context, c store.Committer, plans []store.Chained) error {
		for i := range plans {
			x := *plans[i].Plan
			x.Delete, plans[i].Plan = nil, &x
		}
		return c.Commit(ctx, plans)
	}}, (*twin).work},
	"a commit that is lost is none": {falsified{commit: func(ctx context.Context, c store.Committer, plans []store.Chained) error {
		if err := c.Commit(ctx, plans); !errors.Is(err, store.ErrLost) {
			return err
		}
		return nil
	}}, (*twin).falsify},
}

// patience is how often as many sequences are drawn as in a run, until a wrong is
// noticed: most are in the first sequence.
const patience = 20

// A difference does not go unnoticed.
func TestDifferencesAreNoticed(t *testing.T) {
	t.Parallel()
	db := openDatabase(t)
	for _, name := range slices.Sorted(maps.Keys(wrongs)) {
		t.Run(name, func(t *testing.T) { // one after the other: they share the database
			found := difference("")
			for range patience {
				rapid.Check(t, func(r *rapid.T) {
					if found != "" {
						return
					}
					w := newTwin(t.Context(), r, db, func(s store.Store) store.Store {
						x := wrongs[name].falsified
						x.Store = s
						return x
					})
					defer func() {
						if v := recover(); v != nil {
							found = v.(difference)
						}
					}()
					w.sequence(wrongs[name].often)
				})
			}
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}
