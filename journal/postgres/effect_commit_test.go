package postgres

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/cut"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// ask writes a request's row into each of n jobs, and returns leases for their first runs.
func ask(t testing.TB, s *Store, n int) []store.Lease {
	t.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	c := openCommitter(t, s)
	leases, of := make([]store.Lease, n), liveSession(t, s)
	var plans []store.Chained
	ids := startJobs(t, s, keys...)
	wants := make([]store.Want, n)
	for i, id := range ids {
		wants[i] = store.Want{Job: id}
	}
	l, err := c.Load(t.Context(), wants, true)
	require.NoError(t, err)
	for i, id := range ids {
		st := l.States[id]
		p := plan(st)
		row := collation.Row{
			GUID: collation.RequestGUID(
				id.Start(),
				0,
			),
			Job:      id,
			Kind:     journal.MessageRequest,
			Activity: "work",
			DAD:      ",0,0",
			Topic:    "t",
			Body:     []byte(`{"in":1}`),
			NextAt:   st.Now,
			Request:  collation.Request{Turn: 1, Attempt: 1},
			Origin:   p.Entry.Seq,
		}
		p.Insert = []collation.Row{row}
		plans = append(plans, chained(st, p))
		leases[i] = store.Lease{Job: id, Request: row.GUID, Turn: 1, Holder: fmt.Sprint("w", i), Session: of, Fresh: true}
	}
	require.NoError(t, c.Commit(t.Context(), plans))
	return leases
}

// transactions counts the transactions that wrote entries of effects.
func (s *Store) transactions(t testing.TB) int {
	t.Helper()
	return s.rows(t, "(SELECT DISTINCT xid FROM entries WHERE chain <> '00000000-0000-0000-0000-000000000000') AS x")
}

// worker returns what handlers write with, over a running committer.
func worker(t testing.TB, s *Store) store.Worker {
	t.Helper()
	c, err := engine.NewCommitter(t.Context(), engine.Config{Store: s, Space: s.cfg.Space, Committers: 2})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, devtest.Await(t, "the end of the committer", done))
	})
	return c.Worker()
}

// idempotent is one call: its start and its end.
func idempotent(ctx context.Context, s store.Worker, l store.Lease, name string) error {
	e := effectNamed(name)
	e.Class = store.ClassIdempotent
	row, _, err := s.StartEffect(ctx, l, e)
	if err != nil {
		return err
	}
	l.Fence, l.Fresh = row.Fence, false
	e.Result = []byte(`1`)
	_, err = s.FinishEffect(ctx, l, e, false)
	return err
}

// E4, W3: concurrent writes share transactions, also those of one request: a call, which writes
// twice, takes at most a fifth of one, and each effect is recorded once. One after the other, each
// write has its own, and the lease costs none.
func TestE4WritesShareTransactions(t *testing.T) {
	t.Parallel()
	s := open(t)
	w := worker(t, s)
	leases, calls := ask(t, s, 200), 0
	var all sync.WaitGroup
	for i, l := range leases[10:] {
		for branch := range 1 + 3*(i%10/9) {
			calls++
			all.Go(func() {
				if err := idempotent(t.Context(), w, l, fmt.Sprint("charge ", branch)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	devtest.AwaitAll(t, "the end of all writes", all.Wait)
	shared := s.transactions(t)
	t.Logf("%d calls at once, %d transactions", calls, shared)
	require.LessOrEqual(t, 5*shared, calls)
	require.Equal(t, 2*calls, s.rows(t, "entries WHERE chain <> '00000000-0000-0000-0000-000000000000'"), "each once")
	for i, l := range leases[:10] {
		require.NoError(t, idempotent(t.Context(), w, l, "charge"))
		require.Equal(t, shared+2*(i+1), s.transactions(t))
	}
	require.Equal(t, calls+10, s.rows(t, "effects WHERE state = 'completed'"))
}

// J6, W6: the first write of a run takes two round trips, including the run's lease, and the next
// one takes one.
func TestJ6EffectRoundTrips(t *testing.T) {
	t.Parallel()
	var p *cut.Proxy
	s := fresh(t, func(c *Config) { p, c.DSN = through(t, c.DSN) })
	w := worker(t, s)
	for _, l := range ask(t, s, 9) {
		before := p.Trips()
		require.NoError(t, idempotent(t.Context(), w, l, "charge"))
		if l.Holder == "w8" { // the ones before connect
			require.EqualValues(t, 3, p.Trips()-before)
		}
	}
}

// J8: a row that another transaction has locked delays only its own write.
func TestJ8LockedRowHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := open(t)
	w := worker(t, s)
	leases := ask(t, s, 20)
	other := user(t, s)
	tx, err := other.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), fmt.Sprintf("SELECT FROM %s.dispatches WHERE job = $1 FOR UPDATE", pgx.Identifier{s.schema}.Sanitize()),
		leases[0].Job.String())
	require.NoError(t, err)
	ended := make(chan int, len(leases))
	var all sync.WaitGroup
	for i, l := range leases {
		all.Go(func() {
			if err := idempotent(t.Context(), w, l, "charge"); err != nil {
				t.Error(err)
			}
			ended <- i
		})
	}
	for range len(leases) - 1 {
		require.NotZero(t, devtest.Await(t, "the end of a write", ended), "the first one's row is held")
	}
	require.Equal(t, len(leases)-1, s.rows(t, "effects WHERE state = 'completed'"))
	require.NoError(t, tx.Rollback(t.Context()))
	require.Zero(t, devtest.Await(t, "the end of a write", ended))
	devtest.AwaitAll(t, "the end of all writes", all.Wait)
	require.Equal(t, len(leases), s.rows(t, "effects WHERE state = 'completed'"))
}

// A request's input is not written again with each of its effects: a write of its row changes
// only what effects change.
func TestEffectsLeaveTheInputAlone(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	id := startJobs(t, s, "k")[0]
	input := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	row := request(t, s, id, func(r *collation.Row) { r.Body, r.Activity = input, "work" })
	l, err := s.Lease(t.Context(), id, row.GUID, 1, "w", liveSession(t, s))
	require.NoError(t, err)
	require.NoError(t, s.run(t, "VACUUM dispatches"))
	size := func() int {
		return s.rows(t, "generate_series(1, (SELECT pg_total_relation_size('dispatches') - pg_relation_size('dispatches')))")
	}
	before := size()
	for i := range 10 {
		require.NoError(t, idempotent(t.Context(), journaltest.Driven{Store: s}, l, fmt.Sprint(i)))
	}
	require.Less(t, size()-before, len(input))
	require.Equal(t, input, rowOf(t, s, id, row.GUID).Body)
}
