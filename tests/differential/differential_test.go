package differential

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres"
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

// openDatabase opens a space in Postgres whose clock is a row of a table, and which has the session
// of the process.
func openDatabase(t *testing.T) (store.Store, *pgx.Conn) {
	t.Helper()
	ctx := t.Context()
	dsn := devtest.Postgres(t)
	raw, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = raw.Close(context.WithoutCancel(ctx)) })
	_, err = raw.Exec(ctx,
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`)
	require.NoError(t, err)
	pg, err := postgres.Open(ctx, postgres.Config{DSN: dsn, Space: space, Migrating: true})
	require.NoError(t, err)
	s := &journaltest.Thrifty{Store: pg}
	t.Cleanup(s.Close)
	require.NoError(t, s.Migrate(ctx))
	_, err = raw.Exec(ctx, `SET search_path TO quipu_both; CREATE SCHEMA test;
		CREATE TABLE test.clock (at bigint NOT NULL); INSERT INTO test.clock VALUES (0);
		CREATE TABLE test.kept (k text PRIMARY KEY, v text NOT NULL);
		CREATE OR REPLACE FUNCTION micros() RETURNS bigint LANGUAGE sql VOLATILE RETURN (SELECT at FROM test.clock)`)
	require.NoError(t, err)
	return s, raw
}

// filled are the tables that a sequence fills.
var filled = strings.Fields("jobs instances receipts entries dispatches waits resolved_waits signals effects " +
	"payloads dead_letters flows sessions test.kept")

// newTwin empties the database, and draws the mode of both stores' decisions.
func newTwin(ctx context.Context, t *rapid.T, pg store.Store, raw *pgx.Conn) *twin {
	w := &twin{
		Store: pg, T: t, ctx: ctx, raw: raw, clock: 1_700_000_000_000_000, flows: map[string]*flow.Flow{},
		written: map[journal.JobID]bool{},
	}
	_, err := raw.Exec(ctx, "DELETE FROM "+strings.Join(filled, "; DELETE FROM ")+
		"; UPDATE space SET floor = 0, expire = 0; SELECT setval('dead_letters_id_seq', 1, false)"+
		"; ALTER TABLE sessions ALTER id RESTART")
	require.NoError(t, err)
	w.memory = memstore.New(memstore.Config{Space: space, Now: func() int64 { return w.clock }})
	w.advance(0)
	w.mode = collation.Mode{
		Session: w.openSession(process(0)).pg.ID(), Stepwise: w.chance("stepwise", 30), Fold: w.chance("fold", 40),
		Resend: pick(w, "resend", collation.Never, 30_000_000),
	}
	return w
}

// advance moves the clock of both stores.
func (w *twin) advance(by time.Duration) {
	w.clock += by.Microseconds()
	_, err := w.raw.Exec(w.ctx, "UPDATE test.clock SET at = $1", w.clock)
	require.NoError(w, err)
}

// Postgres and memory give the same rows and the same errors, whatever is loaded and
// committed (the contract of internal/store).
func TestStoresAgree(t *testing.T) {
	t.Parallel()
	pg, raw := openDatabase(t)
	begun, played := time.Now(), 0
	t.Cleanup(func() {
		took := time.Since(begun).Round(time.Second)
		t.Logf("%d sequences of about %s calls, in %v; a difference: %t", played, steps, took, t.Failed())
	})
	rapid.Check(t, func(r *rapid.T) {
		played++
		newTwin(t.Context(), r, pg, raw).sequence()
	})
}

// sequence draws calls, and holds the stores to each other.
func (w *twin) sequence() {
	defer func() { // Postgres has a connection for each
		for _, o := range w.sessions {
			_ = o.end()
		}
	}()
	for _, source := range flows {
		w.deploy(flow.Parse("flow.yaml", []byte(source)))
	}
	for _, topic := range []string{"t.work", "t.fun", "t.each", "t.kid"} {
		w.deploy(flow.Undo(topic))
	}
	w.start()
	calls := slices.Concat(
		slices.Repeat([]func(*twin){(*twin).work}, 14), slices.Repeat([]func(*twin){(*twin).effect, (*twin).lease}, 4),
		slices.Repeat([]func(*twin){
			(*twin).again, (*twin).signal, (*twin).start, (*twin).operate, (*twin).late, (*twin).live, (*twin).sweep,
			(*twin).body, (*twin).hot, (*twin).warm, (*twin).goOn,
		}, 2),
		[]func(*twin){(*twin).pass, (*twin).expire, (*twin).ask, (*twin).publish, (*twin).stray},
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

// twin is two stores as one. A call is made of both; answers, kinds of errors and what is
// stored are held to each other. What is decided is decided once, on what Postgres has
// loaded, which is sometimes less and is then asked for.
type twin struct {
	store.Store // Postgres
	*rapid.T
	ctx    context.Context
	raw    *pgx.Conn // of Postgres
	clock  int64
	memory *memstore.Store
	mode   collation.Mode
	flows  map[string]*flow.Flow // by name and version

	sessions []*own                 // those that have not ended
	spoiled  string                 // how the last plan was made unlawful; "": it was not
	written  map[journal.JobID]bool // by this step
	letter   int64                  // the last id that was given
	// What the sequence has made so far, to be asked for again.
	messages []*collation.Message
	effects  []journal.Effect
	leases   []store.Lease
}

// alike is how values are compared: what a store may spell as it likes is left out.
var alike = gocmp.Options{
	gocmp.Exporter(func(reflect.Type) bool { return true }),
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(collation.State{}, "Flow"),
	cmpopts.IgnoreFields(collation.Box{}, "Waits", "All", "signals"), // memory reads it whole
	gocmp.FilterValues(func(a, b *collation.Chain) bool { return gone(a) && gone(b) }, gocmp.Ignore()),
	gocmp.FilterPath(func(p gocmp.Path) bool { return slices.Contains(unneeded, p.String()) }, gocmp.Ignore()),
	cmpopts.SortSlices(func(a, b store.EffectRow) int { return bytes.Compare(a.Key[:], b.Key[:]) }),
}

// unneeded is what nobody needs of a chain of effects, and Postgres leaves out.
var unneeded = strings.Fields(`
	Chains.Job.Key Chains.Job.Flow Chains.Job.Semaphore Chains.Job.Head Chains.Job.Started Chains.Job.Parent
	Chains.Job.From Chains.Row.Topic Chains.Row.Request.Element Chains.Row.Body Chains.Row.Publication Chains.Row.PublishedAt Chains.Row.Request.WithinAt
	Chains.Row.Origin Chains.Row.Sender Chains.Row.Request.Pauses Chains.Row.Request.Input
	Chains.Effects.Seq Chains.Effects.Turn Chains.Effects.Until`)

// gone says that the job of a chain is not there, or only its tombstone.
func gone(c *collation.Chain) bool {
	return c != nil && (c.Job.State == "" || c.Job.State == journal.JobExpired)
}

func (w *twin) same(what string, pg, mem any) {
	w.Helper()
	if reflect.DeepEqual(pg, mem) { // mostly, and sooner said
		return
	}
	if d := gocmp.Diff(pg, mem, alike); d != "" {
		w.Fatalf("%s: the answers differ (- postgres, + memory):\n%s", what, d)
	}
}

// kinds are the errors on which a caller decides.
var kinds = []error{
	store.ErrLost, store.ErrBusy, store.ErrUnavailable, store.ErrUnknown, store.ErrRejected, store.ErrStale,
	store.ErrLeased,
	store.ErrJobClosed, store.ErrNotFound, store.ErrExhausted, store.ErrVersionTaken, store.ErrBehind,
}

// kind says what a caller can see of an error.
func kind(err error) string {
	i := slices.IndexFunc(kinds, func(k error) bool { return errors.Is(err, k) })
	return fmt.Sprint(err != nil, i)
}

// both makes one call of each store, and gives the answer of Postgres.
func both[T any](w *twin, what string, call func(s store.Store) (T, error)) (T, error) {
	w.Helper()
	x, xerr := call(w.Store)
	y, yerr := call(w.memory)
	return x, agree(w, what, x, y, xerr, yerr)
}

// agree holds two answers, or errors, to each other.
func agree[T any](w *twin, what string, pg, mem T, err, memErr error) error {
	w.Helper()
	w.Logf("%s: %v", what, err)
	if kind(err) != kind(memErr) {
		w.Fatalf("%s: the errors differ:\n  postgres %v\n  memory   %v", what, err, memErr)
	}
	if err == nil {
		w.same(what, pg, mem)
	}
	return err
}

// tables holds to each other what is stored of the jobs that were written, and what is due or
// dead in the space.
func (w *twin) tables() {
	w.Helper()
	for id := range w.written {
		_, _ = both(w, "job "+id.String(), func(s store.Store) (any, error) { return w.stored(s, id) })
	}
	clear(w.written)
	_, _ = both(w, "due", func(s store.Store) (map[store.DueRow]bool, error) {
		rows, _, err := s.Due(w.ctx, store.MaxSweep)
		due := map[store.DueRow]bool{} // what is due at the same time has no order
		for _, d := range rows {
			due[d] = true
		}
		return due, err
	})
	_, _ = both(w, "letters", w.letters)
}

func (w *twin) letters(s store.Store) ([]store.DeadView, error) {
	all, err := s.DeadLetters(w.ctx, store.DeadFilter{All: true, Limit: store.MaxPage})
	if len(all) > 0 {
		w.letter = max(w.letter, all[0].ID)
	}
	return all, err
}

// stored is what the readers of a store give of a job.
func (w *twin) stored(s store.Store, id journal.JobID) (any, error) {
	v, err := s.Job(w.ctx, id)
	if err != nil {
		return nil, err
	}
	if v.State == journal.JobExpired { // what else is kept of it is a store's own affair
		return []any{v.Key, v.Generation, v.Head, v.Closed, v.Next}, nil
	}
	v.Cursor = "" // of lists, which memory has none of
	all := []any{v}
	err = s.Audit(w.ctx, id, func(x *store.Stored, entries iter.Seq2[journal.Record, error]) error {
		all = append(all, x, yielded(w, x.Attachments), yielded(w, entries))
		x.Attachments = nil
		return nil
	})
	return all, err
}

func yielded[T any](w *twin, seq iter.Seq2[T, error]) (out []T) {
	for x, err := range seq {
		require.NoError(w, err)
		out = append(out, x)
	}
	return out
}

// pair is a committer of each store.
type pair struct {
	store.Committer // of Postgres
	memory          store.Committer
	w               *twin
	loaded          [2]*store.Loaded
	wants           []store.Want // what was loaded
}

// Committer implements store.Engine.
func (w *twin) Committer(ctx context.Context, patient bool) (store.Committer, error) {
	pg, err := w.Store.Committer(ctx, patient)
	require.NoError(w, err)
	mem, err := w.memory.Committer(ctx, patient)
	require.NoError(w, err)
	return &pair{Committer: pg, memory: mem, w: w}, nil
}

// Load implements store.Committer.
func (p *pair) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	out, err := p.Committer.Load(ctx, wants, wait)
	mem, memErr := p.memory.Load(ctx, wants, wait)
	p.wants, p.loaded = wants, [2]*store.Loaded{out, mem}
	// Postgres may read more of a job that is not whole.
	for i := 0; i < len(wants) && err == nil && memErr == nil; i++ {
		x, y := out.States[wants[i].Job], mem.States[wants[i].Job]
		if wants[i].Whole && x != nil && y != nil && !x.Whole {
			x.Rows, x.Instances, x.Results = y.Rows, y.Instances, y.Results
		}
	}
	if err := agree(p.w, "load", out, mem, err, memErr); err != nil {
		return nil, err
	}
	for id, box := range out.Boxes { // Postgres reads the first waits of a mailbox
		p.w.same("waits of a mailbox", box.Waits, mem.Boxes[id].Waits[:len(box.Waits)])
	}
	return out, nil
}

// Commit implements store.Committer. Some plans are committed twice, as if it had not been read
// what they did: they lose.
func (p *pair) Commit(ctx context.Context, plans []store.Chained) error {
	err := p.commit(ctx, plans)
	if err == nil && p.w.chance("twice", 3) {
		if _, err := p.Load(ctx, p.wants, true); err == nil {
			_ = p.commit(ctx, plans)
		}
	}
	return err
}

func (p *pair) commit(ctx context.Context, plans []store.Chained) error {
	p.w.note(plans)
	err, memErr := p.Committer.Commit(ctx, plans), p.memory.Commit(ctx, plans)
	if spoiled := p.w.spoiled; spoiled != "" { // by which error it is refused is no promise
		p.w.spoiled = ""
		if err == nil || memErr == nil {
			p.w.Fatalf("a plan with a spoiled %s was committed:\n  postgres %v\n  memory   %v", spoiled, err, memErr)
		}
		memErr = err
	}
	if err = agree(p.w, "commit", 0, 0, err, memErr); err != nil { // Postgres may have used ids of dead letters
		_, _ = p.w.letters(p.w.memory)
		_, failed := p.w.raw.Exec(ctx, "SELECT setval('dead_letters_id_seq', $1, false)", p.w.letter+1)
		require.NoError(p.w, failed)
		return err
	}
	p.w.same("kept signals to publish", byGUID(p.Committer.Released()), byGUID(p.memory.Released()))
	return nil
}

// note has the jobs of plans compared after the step.
func (w *twin) note(plans []store.Chained) {
	for _, c := range plans {
		w.written[c.Plan.Job] = true
		for i := range c.Plan.Insert {
			w.written[c.Plan.Insert[i].Job] = true
		}
		for i := range c.Plan.Taken {
			w.written[c.Plan.Taken[i].Job] = true
		}
	}
}

// byGUID sorts: the order between mailboxes is no promise.
func byGUID(all []store.Outgoing) []store.Outgoing {
	return slices.SortedFunc(slices.Values(all), func(a, b store.Outgoing) int {
		return bytes.Compare(a.Row.GUID[:], b.Row.GUID[:])
	})
}

// More implements store.Committer. What the plans so far made of the state of
// Postgres is made of the other before.
func (p *pair) More(ctx context.Context, needs map[journal.JobID]*collation.Need) error {
	pg, mem := p.loaded[0].States, p.loaded[1].States
	for id := range needs {
		if st := pg[id]; st != nil {
			x := st.Fork(st.Now)
			x.Receipts, x.Unfinished, x.Record = maps.Clone(st.Receipts), maps.Clone(st.Unfinished),
				maps.Clone(st.Record)
			x.Waits, x.Latest, x.Keys = maps.Clone(st.Waits), maps.Clone(st.Latest), maps.Clone(st.Keys)
			*mem[id] = *x
		}
	}
	err := agree(p.w, "more", 0, 0, p.Committer.More(ctx, needs), p.memory.More(ctx, needs))
	for id := range needs {
		if err == nil && pg[id] != nil {
			p.w.same("more", pg[id], mem[id])
		}
	}
	return err
}

func (p *pair) Rollback(ctx context.Context) error {
	return errors.Join(p.Committer.Rollback(ctx), p.memory.Rollback(ctx))
}

func (p *pair) Close() {
	p.Committer.Close()
	p.memory.Close()
}
