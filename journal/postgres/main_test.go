package postgres

import (
	"context"
	"math"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/cut"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

func TestMain(m *testing.M) { devtest.Main(lending{m}) }

// open lends a migrated and empty space, in a database that no other test uses meanwhile. A test
// that alters the schema or kills the space's connections takes a fresh one.
func open(t testing.TB) *Store {
	t.Helper()
	s := spaces.lend(t)
	t.Cleanup(s.back)
	return s.at
}

// fresh returns a migrated space in its own database.
func fresh(t testing.TB, change ...func(*Config)) *Store {
	t.Helper()
	return openIn(t, devtest.Copy(t, "a space", prepare), change...)
}

// prepare migrates the space that tests have.
func prepare(ctx context.Context, dsn string) error {
	s, err := Open(ctx, Config{DSN: dsn, Space: "test-1", Migrating: true})
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Migrate(ctx)
}

// openIn is fresh in a database that may have other spaces, too.
func openIn(t testing.TB, dsn string, change ...func(*Config)) *Store {
	t.Helper()
	s := migrated(t, dsn, change...)
	t.Cleanup(func() { drivers.Delete(s.at); s.Thrifty.Close() })
	return s.at
}

// migrated opens and migrates a space.
func migrated(t testing.TB, dsn string, change ...func(*Config)) *space {
	t.Helper()
	cfg := Config{DSN: dsn, Space: "test-1", Migrating: true, Writer: "test"}
	for _, c := range change {
		c(&cfg)
	}
	ctx := context.WithoutCancel(t.Context()) // it may be lent to others
	at := must(Open(ctx, cfg))(t)
	s := &space{
		at: at, engine: at, worker: at, retention: at,
		Thrifty: &journaltest.Thrifty{Store: at, Again: func(c store.Committer) {
			c.(*committer).session, c.(*committer).seq = newSession(), 0
		}},
	}
	drivers.Store(at, journaltest.Driven{Store: s.Thrifty})
	require.NoError(t, at.Migrate(ctx))
	return s
}

// through returns a DSN that leads through a new proxy.
func through(t testing.TB, dsn string) (*cut.Proxy, string) {
	t.Helper()
	u := must(url.Parse(dsn))(t)
	p := cut.New(t, u.Host)
	u.Host = p.Addr()
	return p, u.String()
}

// run executes SQL text on the pool.
func (s *Store) run(t testing.TB, text string) error {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // cleanups run some
	return s.with(ctx, func(c *conn) error { return c.exec(ctx, text) })
}

// What drives a store in tests.

var drivers sync.Map // of open

func (s *Store) driven() journaltest.Driven {
	if d, ok := drivers.Load(s); ok {
		return d.(journaltest.Driven)
	}
	return journaltest.Driven{Store: s}
}

// liveSession opens a session that lives as long as the test, and returns its id.
func liveSession(t testing.TB, s *Store) int64 {
	t.Helper()
	x := must(s.OpenSession(t.Context(), store.Process{Name: t.Name(), Lease: time.Hour}))(t)
	t.Cleanup(func() { _ = x.End(t.Context()) }) // it gives its connection up
	return x.ID()
}

// begin starts jobs with the keys and returns their ids.
func startJobs(t testing.TB, s *Store, keys ...string) []journal.JobID {
	t.Helper()
	starts := make([]store.Start, len(keys))
	for i, k := range keys {
		starts[i] = store.Start{Flow: testFlow, Trigger: "start", Key: k, Input: []byte(`{"n":1}`)}
	}
	out := must(s.driven().Start(t.Context(), starts, collation.Mode{}))(t)
	ids := make([]journal.JobID, len(keys))
	for i, o := range out {
		require.NoError(t, o.Err)
		ids[i] = o.Job
	}
	return ids
}

// testFlow is the flow of testDefinition, which is not deployed.
var (
	testDefinition, _ = flow.Parse("flow.yaml", []byte(`{flow: flow, version: "1", activities: {start: {type: trigger}}}`))
	testFlow          = journal.FlowRef{Name: "flow", Version: "1", Digest: journal.Digest(testDefinition.Digest())}
)

// sourced is a store that knows the definition.
type sourced struct{ *Store }

// Flow implements engine.Source.
func (sourced) Flow(context.Context, string, string) ([]byte, error) {
	return testDefinition.Canonical(), nil
}

// joins is what starts and signals in a caller's transaction: it need not run for that.
func (s *Store) joins(ctx context.Context) (*engine.Committer, error) {
	return engine.NewCommitter(ctx, engine.Config{Store: s, Space: s.cfg.Space, Flows: engine.NewFlows(sourced{s})})
}

func (s *Store) startTx(ctx context.Context, tx any, starts []store.Start) (out []store.Started, err error) {
	c, err := s.joins(ctx)
	for i := 0; i < len(starts) && err == nil; i++ {
		var started store.Started
		started, err = c.StartTx(ctx, tx, starts[i])
		out = append(out, started)
	}
	return out, err
}

func (s *Store) signalTx(ctx context.Context, tx any, x *collation.Signal) (store.Signalled, error) {
	c, err := s.joins(ctx)
	if err != nil {
		return store.Signalled{}, err
	}
	return c.SignalTx(ctx, tx, *x)
}

// plan returns a plan that only moves the job's head; tests add to it.
func plan(st *collation.State) *collation.Plan {
	j := &st.Job
	return &collation.Plan{
		Job: j.ID, Outcome: collation.Handled,
		Semaphore: journal.SemaphoreMove{Before: j.Semaphore, After: j.Semaphore},
		Entry: &journal.Entry{
			Space: j.Space, Job: j.ID, Generation: j.Generation, Seq: j.Head.Seq + 1, Kind: journal.KindLeg1,
			Time: int64(st.Now),
		},
	}
}

// chained chains the plan and applies it to the state.
func chained(st *collation.State, p *collation.Plan) store.Chained {
	c := store.Chain(&st.Job, p)
	head := st.Job.Head
	st.Apply(p)
	st.Job.Head = head
	return c
}

// committer opens a committer for the test.
func openCommitter(t testing.TB, s *Store) *committer {
	t.Helper()
	c := must(s.Committer(t.Context(), true))(t)
	t.Cleanup(c.Close)
	return c.(*committer)
}

// unannounced makes a store that announces nothing, for a test that counts round trips: when it
// announces depends on the time (W9), and so would the trip that prepares this statement.
func unannounced(s *Store) *Store {
	s.announced.Store(math.MaxInt64)
	return s
}

// load loads one job and what else is asked for, waiting for locks.
func load(t testing.TB, c store.Committer, w store.Want) *collation.State {
	t.Helper()
	l := must(c.Load(t.Context(), []store.Want{w}, true))(t)
	require.NotNil(t, l.States[w.Job])
	return l.States[w.Job]
}

// request writes a request's row into the job, as its Leg1 would.
func request(t testing.TB, s *Store, job journal.JobID, change ...func(*collation.Row)) collation.Row {
	t.Helper()
	c := openCommitter(t, s)
	st := load(t, c, store.Want{Job: job})
	p := plan(st)
	row := collation.Row{
		GUID: collation.RequestGUID(job.Start(), 0), Job: job, Kind: journal.MessageRequest, Activity: "work", DAD: ",0,0",
		Topic: "t", Body: []byte(`{"in":1}`), NextAt: st.Now, Request: collation.Request{Turn: 1, Attempt: 1}, Origin: p.Entry.Seq,
	}
	for _, f := range change {
		f(&row)
	}
	p.Insert = []collation.Row{row}
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, p)}))
	return row
}

// must is the value of a call that must succeed.
func must[T any](v T, err error) func(tester) T {
	return func(t tester) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// tester is a test, also one of rapid.
type tester interface {
	require.TestingT
	Helper()
}

// failed is the error of a call whose value does not matter.
func failed[T any](_ T, err error) error { return err }
