package postgres

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// ask writes a request's row into each of n jobs, and gives leases with which
// their first runs write.
func ask(t testing.TB, s *Store, n int) []store.Lease {
	t.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	c := openCommitter(t, s)
	leases := make([]store.Lease, n)
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
			GUID: collation.RequestGUID(id.Start(), 0), Job: id, Kind: journal.MessageRequest, Activity: "work", DAD: ",0,0",
			Topic: "t", Body: []byte(`{"in":1}`), NextAt: st.Now, Turn: 1, Try: 1, Origin: p.Entry.Seq,
		}
		p.Insert = []collation.Row{row}
		plans = append(plans, chained(st, p))
		leases[i] = store.Lease{Job: id, Request: row.GUID, Turn: 1, Holder: fmt.Sprint("w", i), TTL: time.Hour}
	}
	require.NoError(t, c.Commit(t.Context(), plans))
	return leases
}

// transactions counts those that wrote the entries of effects.
func (s *Store) transactions(t testing.TB) int {
	t.Helper()
	return s.rows(t, "(SELECT DISTINCT xid FROM entries WHERE chain <> '00000000-0000-0000-0000-000000000000') AS x")
}

// idempotent is one call: its start and its end.
func idempotent(ctx context.Context, s *Store, l store.Lease, name string) error {
	e := effectNamed(name)
	e.Class = store.ClassIdempotent
	row, _, err := s.StartEffect(ctx, l, e)
	if err != nil {
		return err
	}
	l.Fence, l.TTL = row.Fence, 0
	e.Result = []byte(`1`)
	_, err = s.FinishEffect(ctx, l, e, false)
	return err
}

// E4: writes of different requests that are under way at the same time share
// transactions: less than half of one for a call, which writes twice. One by
// one, each write has its own, and the lease costs none.
func TestE4WritesShareTransactions(t *testing.T) {
	t.Parallel()
	s := open(t)
	leases := ask(t, s, 200)
	var all sync.WaitGroup
	for _, l := range leases[10:] {
		all.Go(func() {
			if err := idempotent(t.Context(), s, l, "charge"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	shared := s.transactions(t)
	t.Logf("%d calls at once, %d transactions", len(leases)-10, shared)
	require.Less(t, 2*shared, len(leases)-10)
	for i, l := range leases[:10] {
		require.NoError(t, idempotent(t.Context(), s, l, "charge"))
		require.Equal(t, shared+2*(i+1), s.transactions(t))
	}
	require.Equal(t, 200, s.rows(t, "effects WHERE state = 'completed'"))
}

// J6: a write by itself costs two round trips, the run's lease included.
func TestJ6EffectRoundTrips(t *testing.T) {
	t.Parallel()
	var p *proxy
	s := open(t, func(c *Config) { p, c.DSN = through(t, c.DSN); c.MaxConns = 1 })
	for _, l := range ask(t, s, 3) {
		before := p.trips.Load()
		require.NoError(t, idempotent(t.Context(), s, l, "charge"))
		if l.Holder == "w2" { // the ones before prepare
			require.EqualValues(t, 4, p.trips.Load()-before)
		}
	}
}

// J4: what the database refuses of one write fails no other: each is committed
// alone.
func TestJ4OneRefusedWrite(t *testing.T) {
	t.Parallel()
	s := open(t)
	leases := ask(t, s, 6)
	writes := make([]*effectCall, len(leases))
	for i, l := range leases {
		e := effectNamed("charge")
		e.Class = store.ClassGuarded
		switch i {
		case 2:
			e.Class = "\x00" // no text of PostgreSQL
		case 3:
			l.Turn = 7
		}
		writes[i] = &effectCall{op: "start effect", lease: l, effect: e, decide: func(h *chain) (store.EffectRow, error) {
			out, _, err := h.start(l, e)
			return out, err
		}}
	}
	s.commitGroup(t.Context(), writes)
	for _, w := range writes {
		require.ErrorIs(t, w.err, errAlone)
	}
	require.Zero(t, s.transactions(t))
	var all sync.WaitGroup
	for i, w := range writes {
		all.Go(func() {
			row, err := s.write(t.Context(), w)
			switch i {
			case 2:
				require.ErrorIs(t, err, store.ErrRejected)
			case 3:
				require.ErrorIs(t, err, store.ErrStale)
			default:
				require.NoError(t, err)
				require.Equal(t, leases[i].Holder, row.Holder)
			}
		})
	}
	all.Wait()
	require.Equal(t, 4, s.rows(t, "effects"))
}

// J8: a refused write fails no other of its group, either.
func TestJ8OneStaleWrite(t *testing.T) {
	t.Parallel()
	s := open(t)
	leases := ask(t, s, 3)
	leases[1].Turn = 2
	var writes []*effectCall
	for _, l := range leases {
		e := effectNamed("charge")
		writes = append(writes, &effectCall{op: "start effect", lease: l, effect: e, decide: func(h *chain) (store.EffectRow, error) {
			out, _, err := h.start(l, e)
			return out, err
		}})
	}
	s.commitGroup(t.Context(), writes)
	require.NoError(t, writes[0].err)
	require.ErrorIs(t, writes[1].err, store.ErrStale)
	require.NoError(t, writes[2].err)
	require.Equal(t, []int{2, 1}, []int{s.rows(t, "effects"), s.transactions(t)})
}

// J8: a row that somebody else holds keeps its own write waiting, and no other.
func TestJ8LockedRowHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := open(t)
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
			if err := idempotent(t.Context(), s, l, "charge"); err != nil {
				t.Error(err)
			}
			ended <- i
		})
	}
	for range len(leases) - 1 {
		require.NotZero(t, <-ended, "the first one's row is held")
	}
	require.Equal(t, len(leases)-1, s.rows(t, "effects WHERE state = 'completed'"))
	require.NoError(t, tx.Rollback(t.Context()))
	require.Zero(t, <-ended)
	all.Wait()
	require.Equal(t, len(leases), s.rows(t, "effects WHERE state = 'completed'"))
}

// J4: the connection is lost just before the answer of COMMIT, or before it was
// committed: the writes of the group find their own work, or do it.
func TestJ4GroupUnknownCommit(t *testing.T) {
	t.Parallel()
	for name, cutAt := range map[string]string{"it was committed": "COMMIT\x00", "it was not": "INSERT 0 1\x00"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p *proxy
			s := open(t, func(c *Config) { p, c.DSN = through(t, c.DSN) })
			leases := ask(t, s, 30)
			cut := 0
			p.cutWhen(func(b []byte) bool {
				if cut == 3 || !bytes.Contains(b, []byte(cutAt)) {
					return false
				}
				cut++
				return true
			})
			var all sync.WaitGroup
			for _, l := range leases {
				all.Go(func() {
					if err := idempotent(t.Context(), s, l, "charge"); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			p.mu.Lock()
			require.Equal(t, 3, cut)
			p.mu.Unlock()
			require.Equal(t, 30, s.rows(t, "effects WHERE state = 'completed'"))
			require.Equal(t, 60, s.rows(t, "entries WHERE chain <> '00000000-0000-0000-0000-000000000000'"), "each once")
		})
	}
}

// A request's input is not written again with each of its effects: a write of
// its row touches what effects change.
func TestEffectsLeaveTheInputAlone(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	input := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	row := request(t, s, id, func(r *collation.Row) { r.Body, r.Activity = input, "work" })
	l, err := s.Lease(t.Context(), id, row.GUID, 1, "w", time.Hour)
	require.NoError(t, err)
	require.NoError(t, s.run(t, "VACUUM dispatches"))
	size := func() int {
		return s.rows(t, "generate_series(1, (SELECT pg_total_relation_size('dispatches') - pg_relation_size('dispatches')))")
	}
	before := size()
	for i := range 10 {
		require.NoError(t, idempotent(t.Context(), s, l, fmt.Sprint(i)))
	}
	require.Less(t, size()-before, len(input))
	require.Equal(t, input, rowOf(t, s, id, row.GUID).Body)
}
