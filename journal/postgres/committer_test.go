package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/cut"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

var work = collation.InstanceKey{Activity: "work", DAD: ",0,0"}

// grow is a plan that touches every table of the hot path.
func grow(st *collation.State, n int) *collation.Plan {
	p := plan(st)
	if n == 0 {
		p.Ledgers = []collation.LedgerWrite{{Key: work, New: true, After: 1_000_000_000_000}}
	} else {
		before := st.Instances[work].Ledger
		p.Ledgers = []collation.LedgerWrite{{Key: work, Before: before, After: before + 1_000_000_000_000}}
	}
	g := collation.Leg1GUID(p.Job.Start(), fmt.Sprint(n), ",0,0")
	p.Receipt = &collation.ReceiptWrite{
		GUID: g, New: true, After: 11_000_000_000, Verdict: journal.VerdictHandled, Seq: p.Entry.Seq,
	}
	p.Insert = []collation.Row{{
		GUID: g, Job: p.Job, Kind: journal.MessageLeg1, Activity: "work", DAD: ",0,0", NextAt: st.Now, Origin: p.Entry.Seq,
	}}
	return p
}

// J6: once the statements are prepared, Load and Commit take one round trip each, whatever the
// size of the batch.
func TestLoadAndCommitAreOneRoundTripEach(t *testing.T) {
	t.Parallel()
	var p *cut.Proxy
	s := unannounced(fresh(t, func(c *Config) { p, c.DSN = through(t, c.DSN) }))
	keys := make([]string, 50)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	ids := startJobs(t, s, keys...)
	c := openCommitter(t, s)
	for round := range 4 {
		wants := make([]store.Want, len(ids))
		for i, id := range ids {
			wants[i] = store.Want{
				Job: id, Instances: []collation.InstanceKey{work}, Receipt: id.Start(), Row: id.Start(),
				Results: []collation.InstanceKey{{Activity: "start", DAD: collation.RootDAD}},
			}
		}
		prepared := round >= 2 // the first of each kind prepares
		before := p.Trips()
		l := must(c.Load(t.Context(), wants, round%2 == 0))(t)
		if prepared {
			require.Equal(t, before+1, p.Trips(), "Load")
		}
		require.Len(t, l.States, len(ids))
		var plans []store.Chained
		for _, st := range l.States {
			require.NotNil(t, st.Rows[st.Job.ID.Start()])
			require.JSONEq(t, `{"n":1}`, string(st.Results[collation.InstanceKey{Activity: "start", DAD: ",0"}].Output))
			plans = append(plans, chained(st, grow(st, round)))
		}
		require.NoError(t, c.Commit(t.Context(), plans))
		if prepared {
			require.Equal(t, before+2, p.Trips(), "Commit")
		}
		_, seq := c.Session()
		require.Equal(t, int64(round+1), seq)
	}
}

// waitFor waits until the query has a row.
func waitFor(t testing.TB, s *Store, query string) {
	t.Helper()
	require.Eventually(t, func() bool {
		found := false
		err := s.with(t.Context(), func(c *conn) error {
			results, err := c.pg.Exec(t.Context(), query).ReadAll()
			found = err == nil && len(results[0].Rows) > 0
			return err
		})
		return err == nil && found
	}, 20*time.Second, 5*time.Millisecond)
}

// J4: the connection is lost just before the answer of COMMIT: the marker says that it was
// committed.
func TestUnknownCommitThatWas(t *testing.T) {
	t.Parallel()
	var p *cut.Proxy
	s := fresh(t, func(c *Config) { p, c.DSN = through(t, c.DSN) })
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	session, _ := c.Session()
	st := load(t, c, store.Want{Job: id})
	p.ResetAt("COMMIT\x00", nil)
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, grow(st, 0))}))
	now, seq := c.Session()
	require.Equal(t, session, now)
	require.Equal(t, int64(1), seq)
	st = load(t, c, store.Want{Job: id})
	require.Equal(t, int64(2), st.Job.Head.Seq)
	now, seq = c.Session()
	require.NotEqual(t, session, now, "a new connection is a new session (L1)")
	require.Zero(t, seq)
}

// J4: the server ends the session before its commit. The marker's place is free and is taken, so
// that nothing of the batch can ever appear.
func TestUnknownCommitThatWasNot(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	ids := startJobs(t, s, "k", "first")
	id, c := ids[0], openCommitter(t, s)
	first := load(t, c, store.Want{Job: ids[1]}) // this one prepares, which would wait for the lock, too
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(first, grow(first, 0))}))
	session, _ := c.Session()
	st := load(t, c, store.Want{Job: id})
	// The commit waits for a lock on the journal, and is killed there.
	blocker := must(pgx.Connect(t.Context(), s.cfg.DSN))(t)
	defer func() { require.NoError(t, blocker.Close(context.Background())) }()
	must(blocker.Exec(t.Context(), "BEGIN; LOCK TABLE "+s.schema+".entries IN ACCESS EXCLUSIVE MODE"))(t)
	pid := c.conn.pid
	failed := make(chan error, 1)
	go func() { failed <- c.Commit(t.Context(), []store.Chained{chained(st, grow(st, 0))}) }()
	waitFor(t, s, fmt.Sprintf("SELECT 1 FROM pg_stat_activity WHERE pid = %d AND wait_event_type = 'Lock'", pid))
	require.NoError(t, s.run(t, fmt.Sprintf("SELECT pg_terminate_backend(%d)", pid)))
	require.ErrorIs(t, devtest.Await(t, "the end of the commit", failed), store.ErrUnavailable)
	must(blocker.Exec(t.Context(), "ROLLBACK"))(t)
	st = load(t, c, store.Want{Job: id})
	require.Equal(t, int64(1), st.Job.Head.Seq)
	require.NoError(t, c.Rollback(t.Context()))
	waitFor(t, s, fmt.Sprintf("SELECT 1 FROM batches WHERE session = '%s' AND taken", session))
	again := marker{session: session, seq: 2}
	for range 2 {
		require.ErrorIs(t, s.resolve(t.Context(), again, errNotSent), store.ErrUnavailable, "asking twice gives one answer")
	}
}

// W3: a commit that waits for another transaction's lock until its time is over says so, for the
// engine, which then names what it waited for.
func TestACommitThatWaitedTooLongSaysSo(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	st := load(t, c, store.Want{Job: id})
	s.cfg.CommitTimeout = 200 * time.Millisecond
	other := blocker(t, s, "LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
	err := c.Commit(t.Context(), []store.Chained{chained(st, grow(st, 0))})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	must(other.Exec(t.Context(), "ROLLBACK"))(t)
}

// A database that is away is ErrUnavailable, and the committer recovers by itself once it is back
// (C10).
func TestLostConnection(t *testing.T) {
	t.Parallel()
	var p *cut.Proxy
	s := fresh(t, func(c *Config) { p, c.DSN = through(t, c.DSN) })
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	p.Reset()
	require.ErrorIs(t, failed(c.Load(t.Context(), []store.Want{{Job: id}}, true)), store.ErrUnavailable)
	st := load(t, c, store.Want{Job: id})
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, grow(st, 0))}))
	p.Reset()
	_, err := s.Job(t.Context(), id)
	require.NoError(t, err, "the pool repeats")
}

// A cancelled context ends only a Load: a COMMIT is not cancelled (J4).
func TestCancelledContext(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	l := must(c.Load(ctx, []store.Want{{Job: id}}, true))(t)
	st := l.States[id]
	cancel()
	require.NoError(t, c.Commit(ctx, []store.Chained{chained(st, grow(st, 0))}))
	_, err := c.Load(ctx, []store.Want{{Job: id}}, true)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NotNil(t, load(t, c, store.Want{Job: id}))
}

// A schema that is restored has types with other numbers. A process goes on with its next
// connection, if it is as new as before (S13).
func TestCommitterOfASchemaMadeAnew(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := openCommitter(t, s)
	keep(t, s, c, day, "before")
	require.NoError(t, s.run(t, "DROP SCHEMA "+s.schema+" CASCADE"))
	s.pool.Reset()
	cfg := s.cfg
	cfg.Migrating = true
	again := must(Open(t.Context(), cfg))(t)
	defer again.Close()
	require.NoError(t, again.Migrate(t.Context()))
	require.NoError(t, again.run(t, "UPDATE space SET id = '"+s.where.known.Load().Space.String()+"'"))
	c.drop()
	keep(t, s, c, day, "after")
}

// W8: a session that a commit takes something for lasts until the end of the commit.
func TestSessionLastsUntilTheEndOfACommit(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	require.NoError(t, s.with(t.Context(), func(c *conn) error {
		require.NoError(t, c.exec(t.Context(), `INSERT INTO sessions (name, build, roles, topics, lanes, engine, lease, renewed_at, since)
			VALUES ('w', '', '{}', '{}', 1, false, 1, 1, 1)`))
		require.NoError(t, c.require(t.Context(), "begin", "write_marker", "rollback"))
		require.NoError(t,
			c.run(t.Context(), step{name: "begin"}, step{name: "write_marker", params: [][]byte{pUUID(newSession()), pInt(1), pInts(1)}}))
		require.ErrorContains(t, s.run(t, "SELECT 1 FROM sessions WHERE id = 1 FOR UPDATE NOWAIT"), "55P03", "nobody ends it now")
		require.NoError(t, c.run(t.Context(), step{name: "rollback"}))
		return s.run(t, "SELECT 1 FROM sessions WHERE id = 1 FOR UPDATE NOWAIT")
	}))
}

// W6: what moves a job that was decided on a hot state compares its state and its head, and what
// it lost to is named. What no change by the protocol leaves alone (a head with the same seq) is
// compared, too.
func TestW6WhatMovesAJobComparesItsHotState(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, move := range map[string]func(*collation.Plan){
		"the head":      func(*collation.Plan) {},
		"the semaphore": func(p *collation.Plan) { p.Semaphore.After++ },
	} {
		id := startJobs(t, s, name)[0]
		c := must(s.Committer(t.Context(), false))(t)
		t.Cleanup(c.Close)
		st := load(t, c, store.Want{Job: id})
		require.NoError(t, c.Rollback(t.Context()))
		guess := func(change func(*store.Guard)) error {
			p := plan(st)
			move(p)
			job := st.Job
			x := store.Chain(&job, p)
			x.Guard = store.GuardOf(st, []*collation.Plan{p})
			change(x.Guard)
			return c.Commit(t.Context(), []store.Chained{x})
		}
		for what, change := range map[string]func(*store.Guard){
			"hash":  func(g *store.Guard) { g.Head.Hash[0]++ },
			"state": func(g *store.Guard) { g.State = journal.JobQuarantined },
		} {
			err := guess(change)
			lost, named := errors.AsType[*store.LostError](err)
			require.True(t, named, "%s, %s: %v", name, what, err)
			require.Equal(t, []journal.JobID{id}, lost.Hot, "%s, %s", name, what)
		}
		require.NoError(t, guess(func(*store.Guard) {}), name)
	}
}

// W6: a commit that the server ends for a deadlock counts as lost, so that it is decided again at
// once, on the same connection.
func TestW6ADeadlockCountsAsLost(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	st := load(t, c, store.Want{Job: id, Row: id.Start()})
	require.NoError(t, c.Rollback(t.Context()))
	p := plan(st)
	p.Delete = []journal.GUID{id.Start()}
	job := st.Job
	x := store.Chain(&job, p)
	x.Guard = store.GuardOf(st, []*collation.Plan{p})
	other := blocker(t, s, "SELECT FROM dispatches FOR UPDATE")
	done := make(chan error, 1)
	go func() { done <- c.Commit(context.WithoutCancel(t.Context()), []store.Chained{x}) }()
	waitFor(t, s, someoneWaits) // it has the job, and waits for the row
	must(other.Exec(t.Context(), "SELECT FROM jobs FOR UPDATE"))(t)
	require.ErrorIs(t, devtest.Await(t, "the end of the commit", done), store.ErrLost)
	must(other.Exec(t.Context(), "ROLLBACK"))(t)
	require.NoError(t, c.Commit(t.Context(), []store.Chained{x}))
}

// J1: a job whose stored semaphore has no lawful history is quarantined. The comparison with the
// threshold must not prevent that.
func TestJ1QuarantineOfAnOpenJobAtTheThreshold(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	require.NoError(t, s.run(t, "UPDATE jobs SET semaphore = 0"))
	c := openCommitter(t, s)
	st := load(t, c, store.Want{Job: id, Row: id.Start()})
	p := collation.Quarantine(st,
		&collation.Message{Kind: journal.MessageStart, Job: id, GUID: id.Start(), Row: id.Start(), Activity: "start", DAD: ",0"},
		collation.Mode{}, errors.New("the semaphore of an open job is 0"))
	require.NoError(t, c.Commit(t.Context(), []store.Chained{store.Chain(&st.Job, p)}))
	require.Equal(t, journal.JobQuarantined, load(t, c, store.Want{Job: id}).Job.State)
}
