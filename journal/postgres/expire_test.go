package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

// ended closes a job by hand that expires at once and leaves rows in every table.
func ended(t testing.TB, s *Store, c store.Committer, id journal.JobID) {
	t.Helper()
	body := []byte(id.String())
	require.NoError(t, s.driven().PutPayload(t.Context(), id, sha256.Sum256(body), body))
	l := must(c.Load(t.Context(), []store.Want{{Job: id, Receipt: id.Start()}}, true))(t)
	st := l.States[id]
	var plans []store.Chained
	for n := range 6 {
		p := grow(st, n)
		p.Dead = []collation.DeadLetter{{
			Job: id, Row: journal.GUID{byte(n)}, Kind: journal.MessageLeg1, DAD: ",0", Reason: "stuck",
		}}
		plans = append(plans, chained(st, p))
	}
	p := plan(st)
	w := waitOf(id, 1, id.String())
	w.Since = st.Now
	p.Waits = []collation.Wait{w}
	p.ResolvedWait = &collation.ResolvedWait{
		Request: id.Start(), GUID: id.Start(), PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "n"},
		Seq: p.Entry.Seq,
	}
	p.Semaphore.After = 0
	p.NewState, p.Close, p.Tasks = journal.JobCompleted, &journal.Close{State: journal.JobCompleted}, true
	p.ExpiresAt = st.Now
	p.Receipt = &collation.ReceiptWrite{
		GUID: id.Start(), Before: collation.StartBorn, After: 111_100_000_000, Verdict: journal.VerdictHandled, Seq: 1,
		Closes: true,
	}
	require.NoError(t, c.Commit(t.Context(), append(plans, chained(st, p))))
	require.NoError(t, s.run(t, fmt.Sprintf(`INSERT INTO effects (n, key, request, seq, name, class, not_done, state, fence, holder, turn)
		SELECT n, sha256('x'), id, 1, 'e', 'pure', 0, 'completed', 0, '', 1 FROM jobs WHERE id = '%s'`, id)))
}

// openTables have a job's rows by its id, historyTables by its n.
var openTables = []string{"dispatches", "waits", "dead_letters"}

// buried are the tombstones whose keys were used again.
const buried = "jobs WHERE next = '00000000-0000-0000-0000-000000000000'"

// historyOf returns the rows of a job, or of its tombstone, in one of historyTables.
func historyOf(table string, id journal.JobID) string {
	return fmt.Sprintf("%s JOIN jobs AS j USING (n) WHERE j.id = '%s'", table, id)
}

// requireExpired checks in the tables that only tombstone and history are left of jobs.
func requireExpired(t testing.TB, s *Store, ids []journal.JobID) {
	t.Helper()
	for _, id := range ids {
		for _, table := range openTables {
			require.Zero(t, s.rows(t, fmt.Sprintf("%s WHERE job = '%s'", table, id)), "%s of %s", table, id)
		}
		for _, table := range historyTables {
			require.Positive(t, s.rows(t, historyOf(table, id)), "%s of %s", table, id)
		}
	}
}

// J7: sweepers remove jobs while they are killed, while others remove the same jobs, and while
// the keys are used again. At any moment a job is whole or a tombstone. In the end only
// tombstones are left of the old jobs, and the new jobs are whole.
func TestJ7ExpireUnderLoad(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := openCommitter(t, s)
	keys := make([]string, 24)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i)
	}
	old := startJobs(t, s, keys...)
	heads := map[journal.JobID]journal.Head{}
	for _, id := range old {
		ended(t, s, c, id)
		v := must(s.Job(t.Context(), id))(t)
		heads[id] = v.Head
	}
	watch, err := Open(t.Context(), Config{DSN: s.cfg.DSN, Space: s.cfg.Space}) // its connections are not killed
	require.NoError(t, err)
	defer watch.Close()
	ctx, stop := context.WithCancel(t.Context())
	var others, sweepers sync.WaitGroup
	others.Go(func() { killSweepers(ctx, t, watch) })
	others.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			requireWholeOrTombstone(t, watch, old[i%len(old)], heads)
		}
	})
	others.Go(func() { // uses the keys again
		for ctx.Err() == nil {
			for _, key := range keys {
				_, _ = s.driven().Start(ctx, keyed(key), resend) // most are taken still
			}
		}
	})
	for range 3 {
		sweepers.Go(func() { sweepWhileKilled(ctx, t, s, watch) })
	}
	devtest.AwaitAll(t, "the end of all sweepers", sweepers.Wait)
	require.Eventually(t, func() bool { return watch.rows(t, "jobs WHERE generation = 2") == len(keys) }, time.Minute, 10*time.Millisecond)
	stop()
	devtest.AwaitAll(t, "the end of those beside the sweepers", others.Wait)
	expireAll(t, s) // what those left who were killed
	requireExpired(t, s, old)
	require.Equal(t, len(keys), s.rows(t, buried))
	require.Equal(t, len(keys), s.rows(t, "jobs WHERE expires_at IS NULL AND state = 'open'"))
	l := must(c.Load(t.Context(), []store.Want{{Job: old[0]}}, true))(t)
	require.True(t, l.Tombstones[old[0]])
	for _, key := range keys {
		id := must(s.FindJob(t.Context(), key))(t)
		v := must(s.Job(t.Context(), id))(t)
		require.Len(t, v.Instances, 1)
		require.Len(t, v.Rows, 1)
		require.Equal(t, 1, s.rows(t, historyOf("entries", id)))
	}
}

// killSweepers ends the sessions of removing sweepers at random moments.
func killSweepers(ctx context.Context, t testing.TB, watch *Store) {
	killed := 0
	for n := 0; n < 25 && ctx.Err() == nil; n++ {
		time.Sleep(rand.N(20 * time.Millisecond))
		killed += watch.rows(t, `(SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE '-- expire\_%') AS sweepers`) // the first line of their statements
	}
	t.Logf("%d sweepers were killed", killed)
}

// sweepWhileKilled removes until nothing is left to remove.
func sweepWhileKilled(ctx context.Context, t testing.TB, s, watch *Store) {
	for range 5000 {
		more, err := s.Expire(ctx, 5)
		if err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) {
			t.Errorf("expire: %v", err)
			return
		}
		if err == nil && !more && watch.rows(t, "jobs WHERE state = 'completed'") == 0 {
			return
		}
	}
	t.Error("there is always more")
}

// requireWholeOrTombstone reads a job in one snapshot.
func requireWholeOrTombstone(t testing.TB, s *Store, id journal.JobID, heads map[journal.JobID]journal.Head) {
	err := s.Audit(context.WithoutCancel(t.Context()), id,
		func(x *store.Stored, records iter.Seq2[journal.Record, error]) error {
			entries, want := int64(0), x.Job.Head.Seq
			for _, err := range records {
				if err != nil {
					return err
				}
				entries++
			}
			parts := len(x.Instances) + len(x.Receipts) + len(x.Rows) + len(x.Waits) + len(x.Effects)
			if x.Job.State == journal.JobExpired {
				want = 0
			}
			if entries != want || x.Job.State == journal.JobExpired && parts > 0 || x.Job.Head != heads[id] {
				t.Errorf("job %s, %s: %d entries of %d, %d parts", id, x.Job.State, entries, want, parts)
			}
			return nil
		})
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("audit: %v", err)
	}
}

// J7: a process that dies while it removes leaves the job whole, or as a tombstone that the next
// process clears.
func TestJ7ExpireDies(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := openCommitter(t, s)
	id := startJobs(t, s, "k")[0]
	ended(t, s, c, id)
	block := blocker(t, s, "LOCK TABLE dead_letters IN SHARE MODE")
	type answer struct {
		more bool
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		more, err := s.Expire(context.WithoutCancel(t.Context()), 100)
		done <- answer{more, err}
	}()
	for range 2 { // in the middle; the call tries again
		waitFor(t, s, someoneWaits)
		require.Equal(t, 1, s.rows(t, "jobs WHERE state = 'completed'"), "its mark is not committed")
		require.Equal(t, 1, s.rows(t, "waits"))
		require.NoError(t, s.run(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`))
	}
	_, err := block.Exec(t.Context(), "COMMIT")
	require.NoError(t, err)
	got := devtest.Await(t, "the end of the expiry", done)
	require.NoError(t, got.err)
	require.False(t, got.more)
	requireExpired(t, s, []journal.JobID{id})
	v := must(s.Job(t.Context(), id))(t)
	require.Equal(t, journal.JobExpired, v.State)
	require.Positive(t, v.Head.Seq)

	other := startJobs(t, s, "l")[0] // one that dies between two calls
	ended(t, s, c, other)
	more := must(s.Expire(t.Context(), 1))(t)
	require.True(t, more)
	require.Positive(t, s.rows(t, "dead_letters"))
	again := must(Open(t.Context(), Config{DSN: s.cfg.DSN, Space: s.cfg.Space}))(t)
	defer again.Close()
	for more {
		more = must(again.Expire(t.Context(), 3))(t)
	}
	requireExpired(t, s, []journal.JobID{id, other})
	require.Equal(t, 2, s.rows(t, "jobs WHERE expires_at > micros() + 29 * 86400000000"), "they stay as tombstones")
}

// J7: a payload that arrives while its job expires is stored with the job or not at all.
func TestJ7PayloadWaitsForTheTombstone(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	ended(t, s, openCommitter(t, s), id)
	expiry := blocker(t, s, "SELECT FROM jobs FOR UPDATE; UPDATE jobs SET state = 'expired'")
	body := []byte("late")
	put := make(chan error, 1)
	go func() {
		put <- s.driven().PutPayload(context.WithoutCancel(t.Context()), id, sha256.Sum256(body), body)
	}()
	waitFor(t, s, someoneWaits)
	must(expiry.Exec(t.Context(), "COMMIT"))(t)
	require.ErrorIs(t, devtest.Await(t, "the answer to the payload", put), store.ErrNotFound)
}

// W11, C8: a tombstone ends when it is old and its history is gone. No key gets a generation
// twice, whether its tombstone still exists or not.
func TestW11TombstonesEnd(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := openCommitter(t, s)
	first := startJobs(t, s, "again", "once")
	expired := func(ids ...journal.JobID) {
		for _, id := range ids {
			ended(t, s, c, id)
		}
		expireAll(t, s)
	}
	expired(first...)
	expired(startJobs(t, s, "again")...)
	require.Equal(t, 1, s.rows(t, buried))
	past := func() {
		require.NoError(t, s.run(t, "UPDATE jobs SET expires_at = 1 WHERE state = 'expired'"))
		must(s.Expire(t.Context(), 100))(t)
	}
	past()
	require.Equal(t, 1, s.rows(t, buried+" AND expires_at > 1"), "its history is there")
	require.Equal(t, 3, s.rows(t, "jobs WHERE expires_at > 1"))
	require.Equal(t, 1, s.rows(t, "space WHERE floor = 0"))
	require.NoError(t, s.run(t, "UPDATE jobs SET n = -n - 10000000 WHERE key = 'once' OR next IS NOT NULL")) // as if their partition had gone
	past()
	require.Zero(t, s.rows(t, buried))
	require.Equal(t, 1, s.rows(t, "jobs"))
	require.Equal(t, 1, s.rows(t, "space WHERE floor = 1"))
	guess := collation.Begin(collation.Inception{
		Space: s.cfg.Space, Key: "guessed", Flow: testFlow, Trigger: "start", Input: []byte(`1`), Now: 1,
	}, nil, collation.Mode{})
	e := guess.Entry
	must(c.Load(t.Context(), nil, true))(t)
	err := c.Commit(t.Context(),
		[]store.Chained{store.Chain(&collation.Job{ID: e.Job, Space: e.Space, Generation: e.Generation}, guess)})
	lost, ok := errors.AsType[*store.LostError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []string{"guessed"}, lost.Keys, "the first generation is over")
	for key, generation := range map[string]int64{"once": 2, "new": 2, "again": 3} {
		id := startJobs(t, s, key)[0]
		require.Equal(t, collation.NewJobID(s.cfg.Space, key, generation), id, key)
	}
	must(s.FindJob(t.Context(), "once"))(t)
}

// W11, S8: a floor at its limit, and a count at its own, stop nothing: tombstones above the floor stay, others end.
func TestW11AFloorAtItsLimitStopsNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := openCommitter(t, s)
	ended(t, s, c, startJobs(t, s, "before")[0])
	require.NoError(t, s.run(t, "UPDATE space SET floor = 1000000000000, dropped = 1000000000000000"))
	ended(t, s, c, startJobs(t, s, "above")[0])
	expireAll(t, s)
	require.NoError(t, s.run(t, "UPDATE jobs SET expires_at = 1, n = -n - 10000000"))
	require.NoError(t, s.run(t, `INSERT INTO dead_letters (job, guid, kind, activity, dad, reason, message, ledger, stray, at)
		SELECT gen_random_uuid(), gen_random_uuid(), '', '', '', 'foreign', '', 0, 0, 1 FROM generate_series(1, 1001)`))
	expireAll(t, s)
	require.Equal(t, 1, s.rows(t, "jobs WHERE generation > 1000000000000 AND expires_at > 1"))
	require.Equal(t, 1, s.rows(t, "jobs"))
	require.Equal(t, store.MaxUnclaimed, s.rows(t, "dead_letters"))
}

// W11, C8: the tombstone of a key ends while a start of the key waits for it. The start has seen the
// floor as it was before, and nevertheless begins no generation that has been.
func TestW11AStartThatWaitsForTheEndOfATombstone(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := openCommitter(t, s)
	ended(t, s, c, startJobs(t, s, "k")[0])
	expireAll(t, s)
	require.NoError(t, s.run(t, "UPDATE jobs SET expires_at = 1, n = -n - 10000000")) // as if its partition had gone
	end := blocker(t, s, "PREPARE raising AS "+statements["expire_floor"]+"; EXECUTE raising(100, 10000000); PREPARE ending AS "+statements["expire_end"]+"; EXECUTE ending(100, 1, 10000000)")
	p := collation.Begin(collation.Inception{
		Space: s.cfg.Space, Key: "k", Flow: testFlow, Trigger: "start", Input: []byte(`1`), Now: 1,
	}, nil, collation.Mode{})
	must(c.Load(t.Context(), nil, true))(t)
	begun := make(chan error, 1)
	go func() {
		begun <- c.Commit(context.WithoutCancel(t.Context()), []store.Chained{
			store.Chain(&collation.Job{ID: p.Job, Space: s.cfg.Space, Generation: p.Entry.Generation}, p),
		})
	}()
	waitFor(t, s, someoneWaits)
	must(end.Exec(t.Context(), "COMMIT"))(t)
	lost, named := errors.AsType[*store.LostError](devtest.Await(t, "the answer to the start", begun))
	require.True(t, named)
	require.Equal(t, []string{"k"}, lost.Keys)
	require.Zero(t, s.rows(t, "jobs"))
}

// C8, S8: retention ends no tombstone whose generation the floor does not cover, whatever its login
// asks for: else its key would get a generation twice. Expire, under the same role, raises the
// floor first.
func TestRetentionGivesNoGenerationTwice_S8(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "floor1" })
	require.NoError(t, s.Roles(t.Context()))
	c := openCommitter(t, s)
	ended(t, s, c, startJobs(t, s, "k")[0])
	expireAll(t, s)
	r := as(t, s, "retention")
	require.NoError(t, r.run(t, "DELETE FROM jobs"))
	require.Equal(t, 1, s.rows(t, "jobs WHERE state = 'expired'"), "it is above the floor")
	require.NoError(t, s.run(t, "UPDATE jobs SET expires_at = 1, n = -n - 10000000")) // as if its partition had gone
	expireAll(t, r)
	require.Zero(t, s.rows(t, "jobs"))
	require.Equal(t, 1, s.rows(t, "space WHERE floor = 1"))
	require.Equal(t, collation.NewJobID(s.cfg.Space, "k", 2), startJobs(t, s, "k")[0])
}
