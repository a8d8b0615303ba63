package memstore_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func driven(s *memstore.Store) journaltest.Driven { return journaltest.Driven{Store: s} }

var flowRef = journal.FlowRef{Name: "flow", Version: "1", Digest: journal.Digest{1}}

func start(t *testing.T, s *memstore.Store, key string) journal.JobID {
	t.Helper()
	out, err := driven(s).Start(t.Context(), []store.Start{{Flow: flowRef, Trigger: "start", Key: key, Input: []byte(`{}`)}},
		collation.Mode{})
	require.NoError(t, err)
	require.NoError(t, out[0].Err)
	return out[0].Job
}

func open(t *testing.T, s *memstore.Store) store.Committer {
	t.Helper()
	c, err := s.Committer(t.Context(), true)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// load locks jobs and reads them.
func load(t *testing.T, c store.Committer, jobs ...journal.JobID) *store.Loaded {
	t.Helper()
	var wants []store.Want
	for _, id := range jobs {
		wants = append(wants, store.Want{Job: id})
	}
	l, err := c.Load(t.Context(), wants, true)
	require.NoError(t, err)
	return l
}

// touch returns a plan that only extends the job's chain.
func touch(st *collation.State) store.Chained {
	j := &st.Job
	return store.Chain(j, &collation.Plan{
		Job: j.ID, Outcome: collation.Handled, Done: true,
		Semaphore: journal.SemaphoreMove{Before: j.Semaphore, After: j.Semaphore},
		Entry: &journal.Entry{
			Space: j.Space, Job: j.ID, Generation: j.Generation, Seq: j.Head.Seq + 1, Kind: journal.KindOperator,
		},
	})
}

// TestWaitingIsDurable: in a bubble, waiting for a job lets time pass as if nothing ran, and
// waiters get the job in the order in which they came.
func TestWaitingIsDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Config{})
		id := start(t, s, "k")
		holder := open(t, s)
		load(t, holder, id)
		var mu sync.Mutex
		var order []int
		for i := range 20 {
			go func() {
				c := open(t, s)
				l := load(t, c, id)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				require.NoError(t, c.Commit(t.Context(), []store.Chained{touch(l.States[id])}))
			}()
			synctest.Wait()
		}
		time.Sleep(time.Hour) // the bubble's clock: it moves only when all are blocked durably
		require.Empty(t, order)
		require.NoError(t, holder.Rollback(t.Context()))
		synctest.Wait()
		require.True(t, slices.IsSorted(order))
		require.Len(t, order, 20)
		v, err := s.Job(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, int64(21), v.Head.Seq)
	})
}

// TestClock: the store's clock is the bubble's or the given one (J5).
func TestClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Config{})
		start(t, s, "k")
		at := collation.Micros(time.Now().UnixMicro())
		due, _, err := s.Due(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, at, due[0].Now)
		time.Sleep(time.Minute)
		due, _, err = s.Due(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, at+collation.Micros(time.Minute.Microseconds()), due[0].Now)
	})
	s := memstore.New(memstore.Config{Space: "shop", Now: func() int64 { return 42 }})
	v, err := s.Job(t.Context(), start(t, s, "k"))
	require.NoError(t, err)
	require.Equal(t, collation.Micros(42), v.Started)
	require.Equal(t, "shop", v.Space)
}

// TestNext: the first time at which the clock alone changes something is the due time of a row
// that is not held, or the end of a kept signal.
func TestNext(t *testing.T) {
	t.Parallel()
	now := collation.Micros(1_000_000)
	s := memstore.New(memstore.Config{Now: func() int64 { return int64(now) }})
	isNext := func(next, kept collation.Micros, why string) {
		t.Helper()
		first, expires := s.Next()
		require.Equal(t, []collation.Micros{next, kept}, []collation.Micros{first, expires}, why)
	}
	isNext(collation.Never, collation.Never, "there is nothing")
	_, err := driven(s).Signal(t.Context(), &collation.Signal{
		GUID: journal.GUID{9}, Topic: "paid", Key: "k", Code: collation.CodeOK, Payload: []byte(`1`), Keep: 60_000_000,
	}, collation.Mode{})
	require.NoError(t, err)
	begins, expires := now, now+60_000_000
	isNext(expires, expires, "the signal expires")
	start(t, s, "k")
	isNext(begins, expires, "the start is due")
	now += 120_000_000
	isNext(begins, expires, "they are overdue")
	n, err := driven(s).ExpireSignals(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	rows, _, err := s.Due(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	_, err = s.Claim(t.Context(), []store.Claim{{Row: rows[0], Again: time.Hour}})
	require.NoError(t, err)
	isNext(now+collation.Micros(time.Hour.Microseconds()), collation.Never, "the start is put off")
}

// TestMisuse: a forbidden call is an error and breaks nothing.
func TestMisuse(t *testing.T) {
	t.Parallel()
	s := memstore.New(memstore.Config{})
	id, other := start(t, s, "k"), start(t, s, "other")
	c := open(t, s)
	require.Error(t, c.More(t.Context(), nil))
	plan := touch(load(t, c, id, other).States[other])
	_, err := c.Load(t.Context(), nil, true)
	require.Error(t, err, "a transaction is open")
	require.NoError(t, c.Rollback(t.Context()))
	load(t, c, id)
	require.Error(t, c.Commit(t.Context(), []store.Chained{plan}), "its job is not locked")
	_, err = c.Load(t.Context(), make([]store.Want, store.MaxBatch+1), true)
	require.Error(t, err)
	plan = touch(load(t, c, id).States[id])
	plan.Hash[0] ^= 1
	require.ErrorIs(t, c.Commit(t.Context(), []store.Chained{plan}), store.ErrRejected, "the hash does not continue the chain")
	require.NoError(t, c.Commit(t.Context(), []store.Chained{touch(load(t, c, id).States[id])}))
}

var errFault = errors.New("the network is cut")

// TestBornWhileWaited: a load that waits for another job does not lock a job that begins
// meanwhile, and so leaves it out.
func TestBornWhileWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Config{})
		born, held := collation.NewJobID("memory", "a", 1), collation.NewJobID("memory", "b", 1)
		keys := []string{"a", "b"}
		if bytes.Compare(born[:], held[:]) > 0 { // the one that is looked for first is not there
			born, held = held, born
			slices.Reverse(keys)
		}
		require.Equal(t, held, start(t, s, keys[1]))
		holder, waiter := open(t, s), open(t, s)
		load(t, holder, held)
		var l *store.Loaded
		go func() { l = load(t, waiter, held, born) }()
		synctest.Wait()
		require.Equal(t, born, start(t, s, keys[0]))
		require.NoError(t, holder.Rollback(t.Context()))
		synctest.Wait()
		require.Equal(t, map[journal.JobID]bool{born: true}, l.Busy)
		require.Len(t, l.States, 1)
	})
}

// W6: a decision on a hot state commits only while the job is as the guard says, and the error names
// the job.
func TestW6GuardsAreCompared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		differs func(*store.Guard)
		lost    bool
	}{
		"as it was": {func(*store.Guard) {}, false},
		"state":     {func(g *store.Guard) { g.State = journal.JobCompleted }, true},
		"semaphore": {func(g *store.Guard) { g.Semaphore++ }, true},
		"head":      {func(g *store.Guard) { g.Head.Hash[0]++ }, true},
		"a row":     {func(g *store.Guard) { g.Rows[0].Rev++ }, true},
		"no row":    {func(g *store.Guard) { g.Rows[0].GUID = journal.GUID{9} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := memstore.New(memstore.Config{})
			id := start(t, s, "k")
			reader := open(t, s)
			loaded, err := reader.Load(t.Context(), []store.Want{{Job: id, Row: id.Start()}}, true)
			require.NoError(t, err)
			require.NoError(t, reader.Rollback(t.Context()))
			st := loaded.States[id]
			row := st.Rows[id.Start()]
			require.NotNil(t, row)
			g := &store.Guard{
				State: st.Job.State, Semaphore: st.Job.Semaphore, Head: st.Job.Head,
				Rows: []store.RowGuard{{GUID: row.GUID, Rev: row.Rev}},
			}
			c.differs(g)
			plan := touch(st)
			plan.Guard = g
			err = open(t, s).Commit(t.Context(), []store.Chained{plan})
			if !c.lost {
				require.NoError(t, err)
				return
			}
			lost, is := errors.AsType[*store.LostError](err)
			require.True(t, is, "%v", err)
			require.Equal(t, []journal.JobID{id}, lost.Hot)
		})
	}
}
