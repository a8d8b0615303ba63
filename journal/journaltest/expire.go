package journaltest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var expiries = map[string]func(*bench){
	"a closed job leaves its tombstone when its time has passed (J7)": expireTime,
	"open and quarantined jobs, and those without a time, stay (J7)":  expireNot,
	"what is open of it goes, in small batches (J7)":                  expireBatches,
	"a job that is being decided waits for the next time (J3)":        expireBusy,
	"many sweepers of one job leave one tombstone (T8)":               expireMany,
	"lists know the tombstone (J7)":                                   expireLists,
	"a job stays while its compensations are ordered or run (3.5)":    expireUndo,
	"a key is used again: the next generation (1.11, P29)":            generationNext,
	"late messages of the first meet nothing of the second (P29)":     generationLate,
	"the second stays when the rest of the first is removed (P29)":    generationRest,
	"one of many starters at once begins the next generation":         generationRace,
	"a job that was resumed stays while the next is open":             generationResumed,
	"a job that was forked stays while the fork is open":              generationForked,
	"tombstones end when they are old, and raise the floor (W11)":     generationFloor,
}

// finished runs a job of flow one to its end; it expires at the time at.
func (b *bench) finished(c store.Committer, key string, at collation.Micros) journal.JobID {
	b.Helper()
	id := b.requested(c, one, key)
	b.finish(c, id, at)
	return id
}

// finish answers the request of a job of flow one; the job expires at the time at.
func (b *bench) finish(c store.Committer, id journal.JobID, at collation.Micros) {
	b.Helper()
	r := b.row(id, journal.MessageRequest, "work")
	m := response(&r, success(`1`))
	l, err := b.load(c, m)
	require.NoError(b, err)
	p, err := b.plan(c, l.States[id], m)
	require.NoError(b, err)
	require.True(b, p.Tasks)
	p.ExpiresAt = at
	require.NoError(b, c.Commit(b.ctx(), []store.Chained{store.Chain(&l.States[id].Job, p)}))
}

// tombstone runs a job until it is a tombstone, and returns its state before.
func (b *bench) tombstone(c store.Committer, key string) *store.JobView {
	b.Helper()
	id := b.finished(c, key, b.now(c))
	before := b.view(id)
	b.expire(100)
	require.Equal(b, journal.JobExpired, b.view(id).State)
	return before
}

// expire calls Expire until nothing is left, and counts the calls that said that there is more.
func (b *bench) expire(limit int) int {
	b.Helper()
	for calls := range 1000 {
		more, err := b.s.Expire(b.ctx(), limit)
		require.NoError(b, err)
		if !more {
			return calls
		}
	}
	require.Fail(b, "there is always more")
	return 0
}

// requireTombstone asks every reader for a job that is only a tombstone.
func (b *bench) requireTombstone(c store.Committer, was *store.JobView) {
	b.Helper()
	v := b.view(was.ID)
	require.Equal(b, journal.JobExpired, v.State)
	require.Equal(b, was.Key, v.Key)
	require.Equal(b, was.Generation, v.Generation)
	require.Equal(b, was.Head, v.Head, "an export still proves against it")
	require.Equal(b, was.Closed, v.Closed)
	require.True(b, v.Ended)
	require.Empty(b, v.Instances)
	require.Empty(b, v.Rows)
	require.Empty(b, v.Output)
	_, err := b.s.FindJob(b.ctx(), was.Key)
	require.ErrorIs(b, err, store.ErrNotFound)
	_, err = b.s.Payload(b.ctx(), was.ID, sha256.Sum256([]byte(`"0"`))) // heavy stored it
	require.ErrorIs(b, err, store.ErrNotFound)
	ended, err := b.s.Ended(b.ctx(), []journal.JobID{was.ID})
	require.NoError(b, err)
	require.Equal(b, map[journal.JobID]bool{was.ID: true}, ended)
	l, err := c.Load(b.ctx(), []store.Want{{Job: was.ID, Row: was.ID.Start(), Receipt: was.ID.Start()}}, true)
	require.NoError(b, err)
	require.NoError(b, c.Rollback(b.ctx()))
	require.Equal(b, map[journal.JobID]bool{was.ID: true}, l.Tombstones)
	require.Empty(b, l.States)
	err = b.s.Audit(b.ctx(), was.ID, func(s *store.Stored, records iter.Seq2[journal.Record, error]) error {
		require.Equal(b, journal.JobExpired, s.Job.State)
		require.Equal(b, was.Head, s.Job.Head)
		require.Zero(b, len(s.Instances)+len(s.Receipts)+len(s.Rows)+len(s.Effects)+len(s.Waits))
		for range records {
			b.Error("a tombstone has no entries")
		}
		return nil
	})
	require.NoError(b, err)
}

func expireTime(b *bench) {
	c := b.committer()
	at := b.now(c) + micros(b.span())
	id := b.finished(c, "k", at)
	before := b.view(id)
	early := b.now(c) < at
	more, err := b.s.Expire(b.ctx(), 100)
	require.NoError(b, err)
	require.False(b, more)
	if early && b.now(c) < at { // otherwise the test was too slow to see it
		require.Equal(b, before, b.view(id))
		b.audit(id)
	}
	b.eventually(func() bool {
		b.expire(100)
		return b.view(id).State == journal.JobExpired
	})
	b.requireTombstone(c, before)
	require.Zero(b, b.expire(2), "nothing is left to be removed")
}

func expireNot(b *bench) {
	c := b.committer()
	open := b.requested(c, one, "open")
	kept := b.finished(c, "kept", collation.Never)
	later := b.finished(c, "later", b.now(c)+micros(hour))
	odd := b.finished(c, "odd", b.now(c))
	l, err := c.Load(b.ctx(), []store.Want{{Job: odd}}, true)
	require.NoError(b, err)
	st := l.States[odd]
	p := collation.Quarantine(st, &collation.Message{Job: odd}, b.mode, errors.New("a digit is wrong"))
	require.NoError(b, c.Commit(b.ctx(), []store.Chained{store.Chain(&st.Job, p)}))
	b.expire(100)
	require.Equal(b, journal.JobOpen, b.view(open).State)
	require.Equal(b, journal.JobQuarantined, b.view(odd).State, "a person must see it (J1)")
	for _, id := range []journal.JobID{kept, later} {
		require.Equal(b, journal.JobCompleted, b.view(id).State)
	}
	b.audit(open, kept, later)
}

// heavy runs a job that leaves rows in every table, to be removed at once.
func (b *bench) heavy(c store.Committer, key string) *store.JobView {
	b.Helper()
	id := b.requested(c, one, key)
	for i := range 8 {
		body := fmt.Appendf(nil, `"%d"`, i)
		require.NoError(b, b.s.PutPayload(b.ctx(), id, sha256.Sum256(body), body))
		b.altered(c, id, results(collation.InstanceKey{Activity: "work", DAD: collation.DAD(fmt.Sprint(",0,", i+1))}, true, `1`))
		b.altered(c, id, func(p *collation.Plan, _ *collation.State) {
			p.Receipt = &collation.ReceiptWrite{GUID: guid(i), New: true, Verdict: journal.VerdictStale, Seq: p.Entry.Seq}
			p.Dead = []collation.DeadLetter{{Job: id, Row: guid(i), Kind: journal.MessageLeg1, Activity: "work", DAD: ",0,0", Reason: "stuck"}}
		})
		r := b.row(id, journal.MessageRequest, "work")
		b.altered(c, id, comes(r.GUID, &collation.Pause{PauseRef: pauseRef(journal.PauseSleep, fmt.Sprint(i), ""), GUID: guid(i)}))
		l := b.lease(r, "w")
		b.startEffect(l, effect(fmt.Sprint(i), 0))
		b.finishEffect(l, completed(effect(fmt.Sprint(i), 0), `1`))
	}
	b.finish(c, id, b.now(c))
	for i := range 8 {
		_, _, err := b.s.Interrupt(b.ctx(), b.interruptOf(id, fmt.Sprint(i)), b.mode)
		require.NoError(b, err)
	}
	return b.view(id)
}

func expireBatches(b *bench) {
	c := b.committer()
	was, other := b.heavy(c, "heavy"), b.finished(c, "other", collation.Never)
	more, err := b.s.Expire(b.ctx(), 3)
	require.NoError(b, err)
	require.True(b, more)
	calls := 1
	for ; more; calls++ {
		require.Less(b, calls, 1000)
		b.requireTombstone(c, was)
		more, err = b.s.Expire(b.ctx(), 3)
		require.NoError(b, err)
	}
	b.requireTombstone(c, was)
	require.GreaterOrEqual(b, calls, 3, "at most the limit of each table in a call: there are 8 letters")
	letters, err := b.s.DeadLetters(b.ctx(), store.DeadFilter{All: true, Limit: 100})
	require.NoError(b, err)
	require.Empty(b, letters)
	require.Empty(b, b.due(10))
	late := b.interruptOf(was.ID, "0")
	require.Nil(b, b.stored(c, other, keyOf(&late)))
	b.audit(other)
}

func expireBusy(b *bench) {
	c, d := b.committer(), b.committer()
	id := b.finished(c, "k", b.now(c))
	_, err := c.Load(b.ctx(), []store.Want{{Job: id}}, true)
	require.NoError(b, err)
	b.expire(100)
	require.Equal(b, journal.JobCompleted, b.view(id).State)
	require.NoError(b, c.Rollback(b.ctx()))
	was := b.view(id)
	b.expire(100)
	b.requireTombstone(d, was)
}

func expireMany(b *bench) {
	c := b.committer()
	var was []*store.JobView
	for i := range 6 {
		was = append(was, b.heavy(c, fmt.Sprint(i)))
	}
	together(4, func(int) {
		for range 200 {
			more, err := b.s.Expire(b.ctx(), 7)
			if err != nil {
				b.Errorf("expire: %v", err)
			}
			if !more {
				return
			}
		}
	})
	b.expire(7) // a sweeper that met locked rows may have left some
	for _, v := range was {
		b.requireTombstone(c, v)
	}
}

func expireLists(b *bench) {
	c := b.committer()
	was := b.tombstone(c, "k")
	open := b.requested(c, one, "open")
	counts, err := b.s.Counts(b.ctx())
	require.NoError(b, err)
	require.Equal(b, int64(1), counts[journal.JobExpired])
	require.Equal(b, int64(1), counts[journal.JobOpen])
	require.Zero(b, counts[journal.JobCompleted])
	got, err := b.s.Jobs(b.ctx(), store.JobFilter{States: []journal.JobState{journal.JobExpired}})
	page := got.Jobs
	require.NoError(b, err)
	require.Len(b, page, 1)
	require.Equal(b, b.view(was.ID).JobSummary, page[0])
	audited := map[journal.JobID]bool{}
	for id, err := range b.s.AuditJobs(b.ctx(), nil) {
		require.NoError(b, err)
		audited[id] = true
	}
	require.Equal(b, map[journal.JobID]bool{was.ID: true, open: true}, audited)
}

func generationNext(b *bench) {
	c := b.committer()
	was := b.tombstone(c, "k")
	f := b.deploy(one)
	id := b.start(f, "k")
	require.NotEqual(b, was.ID, id)
	require.Equal(b, collation.NewJobID(b.space(), "k", 2), id)
	v := b.view(id)
	require.Equal(b, int64(2), v.Generation)
	require.Equal(b, journal.JobOpen, v.State)
	require.Equal(b, collation.Never, v.ExpiresAt)
	require.Zero(b, v.Closed)
	require.False(b, v.Ended)
	found, err := b.s.FindJob(b.ctx(), "k")
	require.NoError(b, err)
	require.Equal(b, id, found)
	out, err := b.s.Start(b.ctx(), []store.Start{request(f, "k", `{"n":7}`)}, b.mode)
	require.NoError(b, err)
	var again *store.AlreadyStartedError
	require.ErrorAs(b, out[0].Err, &again)
	require.Equal(b, id, again.Job)
	b.run(c, id)
	b.finish(c, id, b.now(c))
	b.expire(100)
	third := b.start(f, "k")
	require.Equal(b, int64(3), b.view(third).Generation)
	require.Equal(b, collation.NewJobID(b.space(), "k", 3), third)
	b.audit(third)
}

func generationLate(b *bench) {
	c := b.committer()
	was := b.tombstone(c, "k")
	id := b.start(b.deploy(one), "k")
	before := b.view(id)
	l, err := c.Load(b.ctx(), []store.Want{{Job: was.ID, Row: was.ID.Start(), Receipt: was.ID.Start()}, {Job: id}}, true)
	require.NoError(b, err)
	require.NoError(b, c.Rollback(b.ctx()))
	require.Equal(b, map[journal.JobID]bool{was.ID: true}, l.Tombstones, "it is known that there was one")
	require.Len(b, l.States, 1)
	late := b.interruptOf(was.ID, "x")
	_, _, err = b.s.Interrupt(b.ctx(), late, b.mode)
	require.ErrorIs(b, err, store.ErrNotFound)
	b.altered(c, id, inserts(late)) // as from a job that held its id
	require.Equal(b, late.GUID, b.stored(c, id, keyOf(&late)).GUID)
	b.discard(keyOf(&late))
	require.Nil(b, b.stored(c, id, keyOf(&late)))
	_, err = b.s.Job(b.ctx(), was.ID)
	require.ErrorIs(b, err, store.ErrNotFound)
	ended, err := b.s.Ended(b.ctx(), []journal.JobID{was.ID, id})
	require.NoError(b, err)
	require.Equal(b, map[journal.JobID]bool{was.ID: true, id: false}, ended, "who waits for the first is told that it is over")
	after := b.view(id)
	require.Equal(b, before.Rows, after.Rows)
	require.Equal(b, before.Instances, after.Instances)
	counts, err := b.s.Counts(b.ctx())
	require.NoError(b, err)
	require.Equal(b, int64(1), counts[journal.JobOpen])
	require.Zero(b, counts[journal.JobExpired], "one row per key")
	got, err := b.s.Jobs(b.ctx(), store.JobFilter{})
	page := got.Jobs
	require.NoError(b, err)
	require.Len(b, page, 1)
	b.audit(id)
}

// generationRest begins the second generation while most rows of the first still exist.
func generationRest(b *bench) {
	c := b.committer()
	was := b.heavy(c, "k")
	more, err := b.s.Expire(b.ctx(), 1)
	require.NoError(b, err)
	require.True(b, more)
	second := b.heavy(c, "k")
	require.Equal(b, int64(2), second.Generation)
	for range 3 {
		_, err = b.s.Expire(b.ctx(), 1)
		require.NoError(b, err)
	}
	b.expire(2)
	b.requireTombstone(c, second)
	letters, err := b.s.DeadLetters(b.ctx(), store.DeadFilter{All: true, Limit: 100})
	require.NoError(b, err)
	require.Empty(b, letters)
	id := b.requested(c, one, "k")
	require.Equal(b, int64(3), b.view(id).Generation)
	before := b.view(id)
	b.expire(1)
	require.Equal(b, before, b.view(id))
	left := b.interruptOf(was.ID, "0")
	require.Nil(b, b.stored(c, id, keyOf(&left)))
	b.audit(id)
}

func generationRace(b *bench) {
	c := b.committer()
	f := b.deploy(one)
	for round := range 3 {
		key := fmt.Sprint(round)
		b.tombstone(c, key)
		var born atomic.Int64
		together(6, func(int) {
			out, err := b.s.Start(b.ctx(), []store.Start{request(f, key, `{"n":7}`)}, b.mode)
			if err != nil {
				b.Errorf("start: %v", err)
				return
			}
			if out[0].Err == nil {
				born.Add(1)
			}
		})
		require.Equal(b, int64(1), born.Load())
		id, err := b.s.FindJob(b.ctx(), key)
		require.NoError(b, err)
		require.Equal(b, int64(2), b.view(id).Generation)
		b.audit(id)
	}
}

func generationFloor(b *bench) {
	c := b.committer()
	was := b.heavy(c, "k")
	b.tombstone(c, "gone")
	f := b.deploy(one)
	b.expire(100)
	second := b.start(f, "k")
	clock, ok := b.s.Store.(Clock)
	if !ok {
		return // the test cannot wait for TombstoneAge
	}
	for range 2 {
		clock.Advance(store.TombstoneAge + time.Second)
		b.expire(1)
		require.True(b, b.isTombstone(c, was.ID), "its history is there")
	}
	more, err := b.s.Retire(b.ctx(), nil)
	require.NoError(b, err)
	require.False(b, more)
	clock.Advance(store.TombstoneAge + time.Second)
	b.expire(1)
	require.False(b, b.isTombstone(c, was.ID))
	for key, generation := range map[string]int64{"gone": 2, "new": 2} {
		require.Equal(b, collation.NewJobID(b.space(), key, generation), b.start(f, key), key)
	}
	require.Equal(b, int64(2), b.view(second).Generation)
}

// isTombstone says whether a job is known as a tombstone.
func (b *bench) isTombstone(c store.Committer, id journal.JobID) bool {
	b.Helper()
	l, err := c.Load(b.ctx(), []store.Want{{Job: id}}, true)
	require.NoError(b, err)
	require.NoError(b, c.Rollback(b.ctx()))
	return l.Tombstones[id]
}
