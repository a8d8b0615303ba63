package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/soak"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

// W11: every time that a flow can give has a class, the one that drops it soonest.
func TestClassOf(t *testing.T) {
	t.Parallel()
	for keep, name := range map[time.Duration]string{
		0: "never", flow.MinExpire: "days", 10 * day: "days", 10*day + 1: "months", 30 * day: "months", 100 * day: "months",
		100*day + 1: "years", flow.MaxExpire: "years",
	} {
		require.Equal(t, name, classes[classOf(keep)].name, "%v", keep)
	}
	for i := range classes {
		require.Equal(t, i, classOfPart(int64(i)*classNumbers/partitionJobs))
		require.Equal(t, i, classOfPart(int64(i+1)*classNumbers/partitionJobs-1))
	}
}

// W10, W11: what is due for a class of retention.
func TestTenure(t *testing.T) {
	t.Parallel()
	const first = classNumbers / partitionJobs // of days
	every := classes[1].every.Microseconds()
	for name, x := range map[string]struct {
		tenure
		now          int64
		missing      []int64
		opened, turn bool
	}{
		"a new space":   {tenure: tenure{class: 1, newest: first, made: -1}, missing: []int64{first}},
		"without a job": {tenure: tenure{class: 1, newest: first, made: first}, now: 9 * every},
		"the first job": {
			tenure:  tenure{class: 1, used: true, last: classNumbers, newest: first, made: first},
			missing: []int64{first + 1, first + 2}, opened: true,
		},
		"nothing": {tenure: tenure{
			class: 1, used: true, last: classNumbers + 5, newest: first, opened: 1, made: first + 2,
		}, now: every},
		"its time is over": {
			tenure: tenure{class: 1, used: true, last: classNumbers + 5, newest: first, opened: 1, made: first + 2},
			now:    every + 1, turn: true,
		},
		"it is full soon by itself": {tenure: tenure{
			class: 1, used: true, last: classNumbers + partitionJobs - turnMargin, newest: first, opened: 1,
			made: first + 2,
		}, now: 9 * every},
		"there is no next one": {
			tenure: tenure{class: 1, used: true, last: classNumbers, newest: first, opened: 1, made: first},
			now:    9 * every, missing: []int64{first + 1, first + 2},
		},
		"jobs that are kept": {tenure: tenure{used: true, last: 5, opened: 1, made: 2}, now: 1 << 60},
		"jobs that outran it": {tenure: tenure{
			class: 1, used: true, last: classNumbers + 5*partitionJobs, newest: first + 5, made: first + 2,
		}, missing: []int64{first + 5, first + 6, first + 7}, opened: true},
	} {
		missing, opened, turn := x.due(x.now)
		require.Equal(t, x.missing, missing, name)
		require.Equal(t, x.opened, opened, name)
		require.Equal(t, x.turn, turn, name)
	}
}

// keep starts jobs that are kept for that time after their close.
func keep(t testing.TB, s *Store, c store.Committer, d time.Duration, keys ...string) (ids []journal.JobID) {
	t.Helper()
	var wants []store.Want
	for _, key := range keys {
		wants = append(wants, store.Want{Key: key})
	}
	l := must(c.Load(t.Context(), wants, true))(t)
	var plans []store.Chained
	for _, key := range keys {
		p := collation.Begin(collation.Inception{
			Space: s.cfg.Space, Key: key, Flow: testFlow, Trigger: "start", Input: []byte(`{"n":1}`), Now: l.Now, Keep: d,
		}, l.Holders[key], collation.Mode{})
		e := p.Entry
		plans = append(plans, store.Chain(&collation.Job{ID: e.Job, Space: e.Space, Generation: e.Generation}, p))
		ids = append(ids, p.Job)
	}
	require.NoError(t, c.Commit(t.Context(), plans))
	return ids
}

// shut opens the next partition of a class, as if the one before had been closed for that time.
func shut(t testing.TB, s *Store, class int, since time.Duration) {
	t.Helper()
	require.NoError(t, s.Extend(t.Context()))
	require.NoError(t, s.run(t, "UPDATE partitions SET opened = 1 WHERE opened IS NOT NULL"))
	before := s.rows(t, "partitions WHERE opened > 1")
	require.NoError(t, s.Extend(t.Context())) // opens it
	require.NoError(t, s.Extend(t.Context())) // notes it
	require.Greater(t, s.rows(t, "partitions WHERE opened > 1"), before)
	settled(t, s)
	require.NoError(t, s.run(t, fmt.Sprintf("UPDATE partitions SET opened = micros() - %d WHERE opened > 1 AND p / %d = %d",
		since.Microseconds(), classNumbers/partitionJobs, class)))
}

// settled waits for all running transactions, also of other tests: they may have drawn numbers.
func settled(t testing.TB, s *Store) {
	t.Helper()
	waitFor(t, s, "SELECT 1 WHERE (SELECT max(opener) FROM partitions) < pg_snapshot_xmin(pg_current_snapshot())")
}

// expireAll makes tombstones of all due jobs.
func expireAll(t testing.TB, s *Store) {
	t.Helper()
	for must(s.Expire(t.Context(), 100))(t) {
	}
}

// archived is what an archive received.
type archived struct {
	names   []string
	entries map[journal.JobID]int64
	fails   error
}

func (a *archived) keep(_ context.Context, name string, each func(store.Visit) error) error {
	a.names = append(a.names, name)
	a.entries = map[journal.JobID]int64{}
	err := each(func(job *collation.Job, flow journal.Digest, _ iter.Seq2[journal.Attachment, error],
		entries iter.Seq2[journal.Record, error],
	) error {
		var last journal.Head
		for r, err := range entries {
			if err != nil {
				return err
			}
			if r.Chain == journal.MainChain {
				last = journal.Head{Seq: r.Seq, Hash: r.Hash}
				a.entries[job.ID]++
			}
		}
		if last != job.Head || !flow.IsZero() || job.Key == "" || job.Generation == 0 {
			return fmt.Errorf("job %s: %v is not %v", job.ID, last, job.Head)
		}
		return nil
	})
	return errors.Join(err, a.fails)
}

// W11: a partition stays while it has a job that is not a tombstone. Then it is archived and
// dropped, and other partitions are untouched. Tombstones stay.
func TestW11Retire(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "retire" })
	require.NoError(t, s.Roles(t.Context()))
	c := openCommitter(t, s)
	old := keep(t, s, c, day, "again", "b", "open")
	forever, months := keep(t, s, c, 0, "forever"), keep(t, s, c, 30*day, "months")
	require.Equal(t, []int{1, 3, 1}, []int{
		s.rows(t, "jobs WHERE n < 1e17"), s.rows(t, "jobs WHERE n BETWEEN 1e17 AND 2e17 - 1"), s.rows(t, "jobs WHERE n BETWEEN 2e17 AND 3e17 - 1"),
	})
	ended(t, s, c, old[0])
	ended(t, s, c, old[1])
	expireAll(t, s)
	var a archived
	retire := func(want bool) {
		t.Helper()
		more := must(s.Retire(t.Context(), a.keep))(t)
		require.Equal(t, want, more)
	}
	retire(false)
	shut(t, s, 1, retireQuiet/2)
	again := keep(t, s, c, day, "again") // in the next partition
	retire(false)
	shutAgo := fmt.Sprintf("UPDATE partitions SET opened = micros() - %d WHERE opened > 1 AND p > %d", (2 * retireQuiet).Microseconds(), classNumbers/partitionJobs)
	require.NoError(t, s.run(t, shutAgo))
	retire(false)
	require.Empty(t, a.names, "one of its jobs is open")
	ended(t, s, c, old[2])
	retire(false)
	expireAll(t, s)
	require.ErrorIs(t, failed(as(t, s, "retention").Retire(t.Context(), a.keep)), store.ErrOwner)
	requireExpired(t, s, old)

	before := partitions(t, s)
	a.fails = errors.New("the disk is full")
	require.ErrorIs(t, failed(s.Retire(t.Context(), a.keep)), a.fails)
	requireExpired(t, s, old)
	a.fails = nil
	retire(true)
	require.Equal(t, before-1, partitions(t, s))
	require.Equal(t, "retire-days-0", a.names[len(a.names)-1])
	require.Len(t, a.entries, 3)
	for _, id := range old {
		require.Positive(t, a.entries[id])
		for _, table := range historyTables {
			require.Zero(t, s.rows(t, historyOf(table, id)))
		}
	}
	retire(false)
	require.Equal(t, 3, s.rows(t, "jobs WHERE state = 'expired'"))
	require.Equal(t, 1, s.rows(t, buried))
	for _, id := range []journal.JobID{again[0], forever[0], months[0]} {
		requireWholeOrTombstone(t, s, id, map[journal.JobID]journal.Head{id: heads(t, s, id)})
	}
	require.NotEqual(t, old[0], again[0])
}

func heads(t testing.TB, s *Store, id journal.JobID) journal.Head {
	t.Helper()
	v := must(s.Job(t.Context(), id))(t)
	return v.Head
}

// W11: a job that outlives its partition is moved with its whole history, unless it is locked or
// its chain is broken, and then goes on.
func TestW11Moves(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := openCommitter(t, s)
	ids := keep(t, s, c, day, "long", "short")
	long := ids[0]
	st := load(t, c, store.Want{Job: long})
	var plans []store.Chained
	for n := range 5 {
		plans = append(plans, chained(st, grow(st, n)))
	}
	require.NoError(t, c.Commit(t.Context(), plans))
	ended(t, s, c, ids[1])
	expireAll(t, s)
	shut(t, s, 1, classes[1].longest)

	st = load(t, c, store.Want{Job: long}) // somebody has it
	retired := make(chan error, 1)
	go func() {
		more, err := s.Retire(t.Context(), nil)
		if more {
			err = errors.Join(err, errors.New("it was moved"))
		}
		retired <- err
	}()
	require.Eventually(t, func() bool {
		return len(retired) > 0 || s.rows(t, "("+someoneWaits+") AS x") > 0
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, plan(st))}))
	require.NoError(t, devtest.Await(t, "the end of the retirement", retired))
	require.Zero(t, s.rows(t, "jobs WHERE n >= 2e17"))
	was := must(s.Job(t.Context(), long))(t)

	require.NoError(t, s.run(t, "UPDATE entries SET body = 'x' WHERE seq = 3"))
	require.ErrorIs(t, failed(s.Retire(t.Context(), nil)), errBroken)
	require.Zero(t, s.rows(t, "jobs WHERE n >= 2e17"))
	require.NoError(t, s.run(t, fmt.Sprintf(`UPDATE entries SET body = '\x%x' WHERE seq = 3`, plans[1].Body)))

	for must(s.Retire(t.Context(), nil))(t) {
	}
	require.Equal(t, 1, s.rows(t, "jobs WHERE n >= 2e17"))
	require.Zero(t, s.rows(t, fmt.Sprintf("partitions WHERE p = %d", classNumbers/partitionJobs)))
	got := must(s.Job(t.Context(), long))(t)
	for i := range was.Rows {
		was.Rows[i].Rev++ // who read the job where it was decides again
	}
	require.Equal(t, was, got)
	requireWholeOrTombstone(t, s, long, map[journal.JobID]journal.Head{long: was.Head})
	st = load(t, c, store.Want{Job: long, Instances: []collation.InstanceKey{work}})
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, grow(st, 5))}))
	requireWholeOrTombstone(t, s, long, map[journal.JobID]journal.Head{long: heads(t, s, long)})
}

// W11: a partition stays while a transaction that drew one of its numbers may still commit.
func TestW11RetireWaits(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := openCommitter(t, s)
	ended(t, s, c, keep(t, s, c, day, "gone")[0])
	expireAll(t, s)
	slow := blocker(t, s, `INSERT INTO jobs (id, n, key, generation, flow_name, flow_version, flow_digest, trigger, state, semaphore,
		head_seq, head_hash, started, trace) SELECT gen_random_uuid(), nextval('numbers_days'), 'slow', 1, flow_name, flow_version, flow_digest,
		trigger, 'open', 1, 0, head_hash, 0, '' FROM jobs`)
	require.NoError(t, s.Extend(t.Context()))
	require.NoError(t, s.run(t, "UPDATE partitions SET opened = 1 WHERE opened IS NOT NULL"))
	require.NoError(t, s.Extend(t.Context()))
	require.NoError(t, s.Extend(t.Context()))
	require.NoError(t, s.run(t, "UPDATE partitions SET opened = opened - 120000000 WHERE opened > 1"))
	before := partitions(t, s)
	more := must(s.Retire(t.Context(), nil))(t)
	require.False(t, more)
	must(slow.Exec(t.Context(), "COMMIT"))(t)
	settled(t, s)
	more = must(s.Retire(t.Context(), nil))(t)
	require.False(t, more, "it has a job")
	require.Equal(t, before, partitions(t, s))
}

// W11: a transaction that has drawn a number and waits for another has a transaction id, so that
// the drop of a partition waits for it. After a checkpoint a draw happens to give an id itself,
// but not five in a row.
func TestW11NumbersHaveATransaction(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	keys := []string{"a", "b", "c", "d", "e"}
	first := transaction(t, user(t, s))
	startIn(t, s, first, keys...)
	done := make(chan error, len(keys))
	for _, key := range keys {
		tx := must(user(t, s).Begin(t.Context()))(t)
		go func() {
			_, err := s.startTx(context.WithoutCancel(t.Context()), tx, keyed(key))
			done <- errors.Join(err, tx.Commit(context.WithoutCancel(t.Context())))
		}()
	}
	waitFor(t, s, someoneWaits+" AND query LIKE '-- write_jobs_new%' AND backend_xid IS NOT NULL OFFSET 4")
	require.NoError(t, first.Rollback(t.Context()))
	for range keys {
		require.NoError(t, devtest.Await(t, "its end", done))
	}
}

// W11: a job that cannot be moved keeps its partition, and no other one.
func TestW11RetireGoesOn(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := openCommitter(t, s)
	broken, gone := keep(t, s, c, day, "broken"), keep(t, s, c, 30*day, "gone")
	ended(t, s, c, gone[0])
	expireAll(t, s)
	shut(t, s, 1, classes[1].longest)
	require.NoError(t, s.run(t, fmt.Sprintf("UPDATE partitions SET opened = micros() - %d WHERE opened > 1 AND p / %d = 2",
		(2*retireQuiet).Microseconds(), classNumbers/partitionJobs)))
	require.NoError(t, s.run(t, "UPDATE entries SET body = 'x' WHERE n < 2e17"))
	_, err := s.Retire(t.Context(), nil)
	require.ErrorIs(t, err, errBroken)
	require.ErrorContains(t, err, broken[0].String())
	require.Zero(t, s.rows(t, historyOf("entries", gone[0])))
	require.Positive(t, s.rows(t, historyOf("entries", broken[0])))
}

// W11: a process finishes what a dead one left half done, and does not archive it again, since
// the entries had gone.
func TestW11RetireDies(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := openCommitter(t, s)
	ids := keep(t, s, c, day, "k")
	ended(t, s, c, ids[0])
	expireAll(t, s)
	shut(t, s, 1, 2*retireQuiet)
	reader := blocker(t, s, "SELECT FROM entries")
	var a archived
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := s.Retire(ctx, a.keep); done <- err }()
	waitFor(t, s, "SELECT 1 FROM pg_inherits WHERE inhdetachpending")
	more := must(s.Retire(t.Context(), a.keep))(t)
	require.False(t, more, "only one does it at a time")
	cancel()
	require.Error(t, devtest.Await(t, "its end", done))
	require.Equal(t, 1, s.rows(t, "pg_inherits WHERE inhdetachpending"))
	startJobs(t, s, "another") // nobody is held up
	must(reader.Exec(t.Context(), "COMMIT"))(t)
	waitFor(t, s, "SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))") // that of the one that died
	more = must(s.Retire(t.Context(), a.keep))(t)
	require.True(t, more)
	require.Len(t, a.names, 1)
	require.Zero(t, s.rows(t, fmt.Sprintf("pg_class WHERE relname LIKE '%%\\_%d'", classNumbers/partitionJobs)))
	partitions(t, s)
}

// W11: while jobs begin, end, expire and move, and partitions are opened and dropped, every job
// that is not a tombstone is whole.
func TestW11UnderLoad(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var open []journal.JobID
	var g sync.WaitGroup
	for w := range 3 {
		c := openCommitter(t, s)
		g.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				ids := keep(t, s, c, day, fmt.Sprint(w, "-", i, "-a"), fmt.Sprint(w, "-", i, "-b"))
				ended(t, s, c, ids[0])
				st := load(t, c, store.Want{Job: ids[1]})
				require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, grow(st, 0))}))
				mu.Lock()
				open = append(open, ids[1])
				mu.Unlock()
			}
		})
	}
	dropped := 0
	for round := 0; round < soak.Times(2, 6) || dropped < 2; round++ {
		expireAll(t, s)
		shut(t, s, 1, classes[1].longest)
		for more := true; more; {
			before := s.rows(t, "partitions")
			more = must(s.Retire(ctx, nil))(t)
			dropped += max(0, before-s.rows(t, "partitions"))
			expireAll(t, s)
		}
	}
	stop()
	g.Wait()
	require.NotEmpty(t, open)
	for _, id := range open {
		requireWholeOrTombstone(t, s, id, map[journal.JobID]journal.Head{id: heads(t, s, id)})
		v := must(s.Job(t.Context(), id))(t)
		require.Len(t, v.Instances, 2)
		require.Len(t, v.Rows, 2)
	}
	t.Logf("%d jobs are open, %d partitions were dropped, %d jobs were moved", len(open), dropped, s.rows(t, "jobs WHERE n >= 2e17"))
}
