package journaltest

import (
	"crypto/sha256"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var expiries = cases{
	"a closed job leaves its tombstone when its time has passed (J7)": expireTime,
	"open and quarantined jobs, and those without a time, stay (J7)":  expireNot,
	"what is open of it goes, in small batches (J7)":                  expireBatches,
	"a job that is being decided waits for the next time (J3)":        expireBusy,
	"many sweepers of one job leave one tombstone (T8)":               expireMany,
	"a job stays while its compensations are ordered or run (3.5)":    expireUndo,
	"late messages of the first meet nothing of the second (P29)":     generationLate,
	"the second stays when the rest of the first is removed (P29)":    generationRest,
	"a job that was resumed stays while the next is open":             generationResumed,
	"a job that was forked stays while the fork is open":              generationForked,
	"tombstones end when they are old, and raise the floor (W11)":     generationFloor,
}

// now is the store's clock.
func (b *bench) now() collation.Micros {
	b.Helper()
	return b.look().Now
}

// finished runs a job of flow one to its end; it expires at the time at.
func (b *bench) finished(key string, at collation.Micros) journal.JobID {
	b.Helper()
	id := b.requested(one, key)
	b.finish(id, at)
	return id
}

// finish answers the request of a job of flow one; the job expires at the time at.
func (b *bench) finish(id journal.JobID, at collation.Micros) {
	b.Helper()
	b.finishWith(id, at, success(`1`))
}

func (b *bench) finishWith(id journal.JobID, at collation.Micros, with *journal.Response) {
	b.Helper()
	r := b.request(id, "work")
	m := Response(&r, with)
	st := got(b.load(b.c, m))(b).States[id]
	p := got(b.handler(b.c).Plan(b.ctx(), st, m))(b)
	require.True(b, p.Tasks)
	p.ExpiresAt = at
	require.NoError(b, b.commit(store.Chain(&st.Job, p)))
}

// tombstone runs a job until it is a tombstone, and returns its state before.
func (b *bench) tombstone(key string) *store.JobView {
	b.Helper()
	id := b.finished(key, b.now())
	before := b.view(id)
	b.expire(100)
	b.is(journal.JobExpired, id)
	return before
}

// is checks the state of jobs.
func (b *bench) is(state journal.JobState, ids ...journal.JobID) {
	b.Helper()
	for _, id := range ids {
		require.Equal(b, state, b.view(id).State)
	}
}

// expire calls Expire until nothing is left, and counts the calls that said that there is more.
func (b *bench) expire(limit int) int {
	b.Helper()
	for calls := range 1000 {
		if !got(b.s.Expire(b.ctx(), limit))(b) {
			return calls
		}
	}
	require.Fail(b, "there is always more")
	return 0
}

// requireTombstone asks every reader for a job that is only a tombstone.
func (b *bench) requireTombstone(was *store.JobView) {
	b.Helper()
	want := store.JobView{JobSummary: was.JobSummary, Ended: true}
	want.State, want.Semaphore, want.Trace, want.Parent, want.Tags = journal.JobExpired, 0, "", nil, nil
	v := *b.view(was.ID)
	require.Equal(b, was.Head, v.Head, "an export still proves against it")
	v.Semaphore, v.Trace, v.Parent, v.Tags = 0, "", nil, nil // a store may keep them
	v.Flow, v.Started, v.Cursor, v.ExpiresAt = want.Flow, want.Started, want.Cursor, 0
	require.Equal(b, want, v)
	_, err := b.s.FindJob(b.ctx(), was.Key)
	require.ErrorIs(b, err, store.ErrNotFound)
	_, err = b.s.Payload(b.ctx(), was.ID, sha256.Sum256([]byte(`"0"`))) // heavy stored it
	require.ErrorIs(b, err, store.ErrNotFound)
	require.True(b, got(b.s.Ended(b.ctx(), []journal.JobID{was.ID}))(b)[was.ID])
	l := b.look(store.Want{Job: was.ID, Row: was.ID.Start(), Receipt: was.ID.Start()})
	require.Equal(b, map[journal.JobID]bool{was.ID: true}, l.Tombstones)
	require.Empty(b, l.States)
	s := b.tables(was.ID)
	require.Equal(b, []any{journal.JobExpired, was.Head}, []any{s.Job.State, s.Job.Head})
	require.Zero(b, len(s.Instances)+len(s.Receipts)+len(s.Rows)+len(s.Effects)+len(s.Waits))
	require.Empty(b, b.chain(was.ID, journal.MainChain))
	require.Empty(b, got(b.s.JobEffects(b.ctx(), was.ID))(b))
	require.Empty(b, got(b.s.FindEffect(b.ctx(), effect("0", 0).Key))(b))
	request := collation.RequestGUID(was.Instances[len(was.Instances)-1].Leg1, 0)
	require.Empty(b, b.effectsOf(was.ID, request))
	require.Empty(b, b.paused(was.ID, request))
}

func expireTime(b *bench) {
	at := b.now() + micros(b.span())
	id := b.finished("k", at)
	before := b.view(id)
	early := b.now() < at
	require.False(b, got(b.s.Expire(b.ctx(), 100))(b))
	if early && b.now() < at { // otherwise the test was too slow to see it
		require.Equal(b, before, b.view(id))
	}
	b.eventually(func() bool {
		b.expire(100)
		return b.view(id).State == journal.JobExpired
	})
	b.requireTombstone(before)
	require.Zero(b, b.expire(2), "nothing is left to be removed")
	require.Equal(b, map[journal.JobState]int64{journal.JobExpired: 1}, got(b.s.Counts(b.ctx()))(b))
	page := got(b.s.Jobs(b.ctx(), store.JobFilter{States: []journal.JobState{journal.JobExpired}}))(b).Jobs
	require.Equal(b, []store.JobSummary{b.view(id).JobSummary}, page)
}

func expireNot(b *bench) {
	open := b.requested(one, "open")
	kept, later := b.finished("kept", collation.Never), b.finished("later", b.now()+micros(hour))
	odd := b.finished("odd", b.now())
	b.quarantine(odd)
	b.expire(100)
	b.is(journal.JobOpen, open)
	b.is(journal.JobQuarantined, odd) // a person must see it (J1)
	b.is(journal.JobCompleted, kept, later)
}

// heavy runs a job that leaves rows in every table, to be removed at once.
func (b *bench) heavy(key string) *store.JobView {
	b.Helper()
	id := b.requested(one, key)
	for i := range 8 {
		body := fmt.Appendf(nil, `"%d"`, i)
		require.NoError(b, b.s.PutPayload(b.ctx(), id, sha256.Sum256(body), body))
		r := b.request(id, "work")
		b.altered(id, results(collation.InstanceKey{Activity: "work", DAD: collation.DAD(fmt.Sprint(",0,", i+1))}, true, `1`))
		b.altered(id, comes(r.GUID, &collation.Pause{PauseRef: pauseRef(journal.PauseSleep, fmt.Sprint(i), ""), GUID: guid(i)}),
			func(p *collation.Plan, _ *collation.State) {
				p.Receipt = &collation.ReceiptWrite{GUID: guid(i), New: true, Verdict: journal.VerdictStale, Seq: p.Entry.Seq}
				p.Dead = []collation.DeadLetter{{Job: id, Row: guid(i), Kind: journal.MessageLeg1, Activity: "work", DAD: ",0,0", Reason: "stuck"}}
			})
		l := b.lease(r, "w")
		b.startEffect(l, effect(fmt.Sprint(i), 0))
		b.finishEffect(l, completed(effect(fmt.Sprint(i), 0), `1`))
	}
	b.finish(id, b.now())
	closed := b.view(id)
	for i := range 16 {
		require.Equal(b, i < 8, b.interrupt(b.interruptOf(id, fmt.Sprint(i%8))), "of a closed job only the key is recorded (W12)")
	}
	require.Equal(b, closed, b.view(id))
	return closed
}

func expireBatches(b *bench) {
	was, other := b.heavy("heavy"), b.finished("other", collation.Never)
	calls := 1
	for ; got(b.s.Expire(b.ctx(), 3))(b); calls++ {
		require.Less(b, calls, 1000)
		b.requireTombstone(was)
	}
	b.requireTombstone(was)
	require.GreaterOrEqual(b, calls, 3, "at most the limit of each table in a call: there are 8 letters")
	require.Empty(b, b.letters(true))
	require.Empty(b, b.due(10))
	late := b.interruptOf(was.ID, "0")
	require.Nil(b, b.stored(other, keyOf(&late)))
}

func expireBusy(b *bench) {
	id := b.finished("k", b.now())
	b.locked(b.c, store.Want{Job: id})
	b.expire(100)
	b.is(journal.JobCompleted, id)
	require.NoError(b, b.c.Rollback(b.ctx()))
	was := b.view(id)
	b.expire(100)
	b.requireTombstone(was)
}

func expireMany(b *bench) {
	var was []*store.JobView
	for i := range 6 {
		was = append(was, b.heavy(fmt.Sprint(i)))
	}
	together(4, func(int) {
		for range 200 {
			more, err := b.s.Expire(b.ctx(), 7)
			if b.check(err); !more {
				return
			}
		}
	})
	b.expire(7) // a sweeper that met locked rows may have left some
	for _, v := range was {
		b.requireTombstone(v)
	}
}
