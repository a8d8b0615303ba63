package differential

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
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

// database is a space in Postgres whose clock is a row of a table. It is emptied
// for each sequence.
type database struct {
	store  store.Store
	raw    *pgx.Conn
	tables []string
	// columns are the names of those that are compared, by table.
	columns map[string][]string
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
	thrifty := &journaltest.Thrifty{Store: s}
	t.Cleanup(thrifty.Close)
	require.NoError(t, s.Migrate(ctx))
	_, err = raw.Exec(ctx, `SET search_path TO quipu_both; CREATE SCHEMA test; CREATE TABLE test.clock (at bigint NOT NULL); INSERT INTO test.clock VALUES (0);
		CREATE OR REPLACE FUNCTION micros() RETURNS bigint LANGUAGE sql VOLATILE RETURN (SELECT at FROM test.clock)`)
	require.NoError(t, err)
	rows, err := raw.Query(ctx, `SELECT tablename::text FROM pg_tables WHERE schemaname = 'quipu_both' AND tablename <> 'space'`)
	require.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	db := &database{store: thrifty, raw: raw, tables: tables, columns: map[string][]string{}}
	require.ElementsMatch(t, tables, append(sorted(columns), uncompared), "every table is compared")
	for name, list := range columns {
		rows, err := raw.Query(ctx, "SELECT "+list+" FROM "+name+" LIMIT 0")
		require.NoError(t, err)
		for _, f := range rows.FieldDescriptions() {
			db.columns[name] = append(db.columns[name], f.Name)
		}
		rows.Close()
	}
	return db
}

// pair are the two stores in one sequence, and what the sequence has made so far.
type pair struct {
	*rapid.T
	ctx    context.Context
	db     *database
	clock  int64
	stores [2]store.Store // Postgres, memory
	memory *memory.Store
	// spoiled says that the second store was falsified: a difference has to come.
	spoiled bool
	// often, if any, is every second call.
	often func(*pair)
	mode  collation.Mode
	hands []*hand
	flows map[string]*flow.Flow // by name and version
	main  []*flow.Flow          // that jobs are started of

	drawn    drawn
	messages []*collation.Message // that were handled, to be handled again
	leases   []store.Lease
	claims   []store.Claim
	orders   []collation.Row // of children
	signals  []collation.Signal
	stops    []collation.Row // interrupts
	effects  []journal.Effect
}

// hand is a committer of each store.
type hand [2]store.Committer

// difference is what the two stores do not agree on; the sequence ends with it.
type difference string

// differ ends the sequence.
func (p *pair) differ(format string, args ...any) {
	p.Helper()
	if p.spoiled {
		panic(difference(fmt.Sprintf(format, args...)))
	}
	p.Fatalf(format, args...)
}

// newPair empties the database and draws the stores' mode. spoil, if any, takes the
// place of the memory store.
func newPair(ctx context.Context, t *rapid.T, db *database, spoil func(store.Store) store.Store) *pair {
	p := &pair{T: t, ctx: ctx, db: db, clock: 1_700_000_000_000_000, flows: map[string]*flow.Flow{}, drawn: drawn{}}
	batch := &pgx.Batch{}
	for _, name := range db.tables {
		batch.Queue("DELETE FROM " + name)
	}
	batch.Queue("ALTER SEQUENCE dead_letters_id_seq RESTART")
	require.NoError(t, db.raw.SendBatch(ctx, batch).Close())
	p.memory = memory.New(memory.Config{Space: space, Now: func() int64 { return p.clock }})
	p.stores = [2]store.Store{db.store, p.memory}
	if spoil != nil {
		p.spoiled, p.stores[1] = true, spoil(p.memory)
	}
	p.advance(0)
	p.mode = collation.Mode{Stepwise: p.chance("stepwise", 30), Fold: p.chance("fold", 40)}
	if p.chance("resend", 50) {
		p.mode.Resend = 30_000_000
	}
	for range 2 {
		p.hands = append(p.hands, p.open())
	}
	return p
}

func (p *pair) open() *hand {
	h := &hand{}
	for i, s := range p.stores {
		c, err := s.Committer(p.ctx, true)
		require.NoError(p, err)
		h[i] = c
	}
	return h
}

func (p *pair) close() {
	for _, h := range p.hands {
		for _, c := range h {
			c.Close()
		}
	}
}

// advance moves the clock of both stores.
func (p *pair) advance(by time.Duration) {
	p.clock += by.Microseconds()
	_, err := p.db.raw.Exec(p.ctx, "UPDATE test.clock SET at = $1", p.clock)
	require.NoError(p, err)
}

// both makes one call of each store, and holds answers and errors to each other.
func both[T any](p *pair, what string, call func(i int, s store.Store) (T, error)) (T, error) {
	p.Helper()
	var out [2]T
	var errs [2]error
	for i, s := range p.stores {
		out[i], errs[i] = call(i, s)
	}
	p.Logf("%s: %v", what, errs[1])
	if kind(errs[0]) != kind(errs[1]) {
		p.differ("%s: the errors differ:\n  postgres %v\n  memory   %v", what, errs[0], errs[1])
	}
	if errs[1] == nil {
		p.same(what, out[0], out[1])
	}
	p.tables(what)
	return out[1], errs[1]
}

// same holds two values to each other.
func (p *pair) same(what string, pg, mem any) {
	p.Helper()
	if a, b := describe(pg), describe(mem); !slices.Equal(a, b) {
		p.differ("%s: the answers differ:%s", what, differences(a, b))
	}
}

// done is both for calls without an answer.
func (p *pair) done(what string, call func(i int, s store.Store) error) error {
	p.Helper()
	_, err := both(p, what, func(i int, s store.Store) (struct{}, error) { return struct{}{}, call(i, s) })
	return err
}

// upTo draws 0 to n, all equally often; the generators of rapid prefer small
// numbers. It shrinks to 0.
func (p *pair) upTo(label string, n int) int {
	return rapid.Custom(func(t *rapid.T) int {
		v := 0
		for range bits.Len(uint(n)) + 3 { //nolint:gosec // n is small
			v <<= 1
			if rapid.Bool().Draw(t, "bit") {
				v++
			}
		}
		return v % (n + 1)
	}).Draw(p.T, label)
}

// chance is true in so many of a hundred draws; it shrinks to false.
func (p *pair) chance(label string, percent int) bool { return p.upTo(label, 99) >= 100-percent }

func pick[T any](p *pair, label string, of ...T) T { return of[p.upTo(label, len(of)-1)] }

// recent draws one of a list, mostly a late one; false where there is none.
func recent[T any](p *pair, label string, of []T) (v T, ok bool) {
	if len(of) == 0 {
		return v, false
	}
	if n := 5; len(of) > n && p.chance("recent", 70) {
		of = of[len(of)-n:]
	}
	return of[p.upTo(label, len(of)-1)], true
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// views reads all jobs, of the memory store: the sequence goes on from there.
func (p *pair) views() []*store.JobView {
	list, err := p.stores[1].Jobs(p.ctx, store.JobFilter{Limit: store.MaxPage})
	require.NoError(p, err)
	var out []*store.JobView
	for i := range list {
		v, err := p.stores[1].Job(p.ctx, list[i].ID)
		require.NoError(p, err)
		out = append(out, v)
	}
	return out
}

// rows are the rows of all jobs of a kind, "" for any, in a fixed order.
func (p *pair) rows(kind journal.MessageKind) []collation.Row {
	var out []collation.Row
	seen := map[collation.RowKey]bool{}
	for _, v := range p.views() {
		for _, r := range v.Rows {
			if k := (collation.RowKey{Job: r.Job, GUID: r.GUID}); !seen[k] && (kind == "" || r.Kind == kind) {
				seen[k] = true
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b collation.Row) int {
		return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.GUID.String(), b.GUID.String()))
	})
	return out
}

func keyOf(r *collation.Row) collation.RowKey { return collation.RowKey{Job: r.Job, GUID: r.GUID} }
