package postgres

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// now is the store's clock.
func (b *bench) now() collation.Micros {
	b.Helper()
	return b.look().Now
}

// finished runs a job of flow one to its end; it expires at the time at.
func (b *bench) finished(key string, at collation.Micros) journal.JobID {
	b.Helper()
	id := b.requested(oneWorker, key)
	b.finish(id, at)
	return id
}

// finish answers the request of a job of flow one; the job expires at the time at.
func (b *bench) finish(id journal.JobID, at collation.Micros) {
	b.Helper()
	b.finishWith(id, at, journaltest.Success(`1`))
}

func (b *bench) finishWith(id journal.JobID, at collation.Micros, with *journal.Response) {
	b.Helper()
	r := b.request(id, "work")
	expires := b.altering(func(p *collation.Plan) { p.ExpiresAt = at })
	p := must(b.s.Handle(b.ctx(), expires, journaltest.Response(&r, with)))(b)[0]
	require.True(b, p.Tasks)
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
		if !must(b.s.Expire(b.ctx(), limit))(b) {
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
	require.GreaterOrEqual(b, v.Closed, want.Closed, "of the end only the row tells")
	v.Closed = want.Closed
	require.Equal(b, want, v)
	require.ErrorIs(b, failed(b.s.FindJob(b.ctx(), was.Key)), store.ErrNotFound)
	// heavy stored it
	require.ErrorIs(b, failed(b.lists.Payload(b.ctx(), was.ID, sha256.Sum256([]byte(`"0"`)))), store.ErrNotFound)
	require.True(b, must(b.s.Ended(b.ctx(), []journal.JobID{was.ID}))(b)[was.ID])
	l := b.look(store.Want{Job: was.ID, Row: was.ID.Start(), Receipt: was.ID.Start()})
	require.Equal(b, map[journal.JobID]bool{was.ID: true}, l.Tombstones)
	require.Empty(b, l.States)
	s := b.tables(was.ID)
	require.Equal(b, []any{journal.JobExpired, was.Head}, []any{s.Job.State, s.Job.Head})
	require.Zero(b, len(s.Instances)+len(s.Receipts)+len(s.Rows)+len(s.Effects)+len(s.Waits))
	require.Empty(b, b.chain(was.ID, journal.MainChain))
	require.Empty(b, must(b.s.JobEffects(b.ctx(), was.ID))(b))
	require.Empty(b, must(b.s.FindEffect(b.ctx(), effect("0", 0).Key))(b))
	request := collation.RequestGUID(was.Instances[len(was.Instances)-1].Leg1, 0)
	require.Empty(b, b.effectsOf(was.ID, request))
	require.Empty(b, b.paused(was.ID, request))
}

var _ = test("Expiry", "a closed job leaves its tombstone when its time has passed (J7)", func(b *bench) {
	at := b.now() + micros(lasting)
	id := b.finished("k", at)
	before := b.view(id)
	require.False(b, must(b.s.Expire(b.ctx(), 100))(b))
	require.Equal(b, before, b.view(id))
	b.eventually(func() bool {
		b.expire(100)
		return b.view(id).State == journal.JobExpired
	})
	b.requireTombstone(before)
	require.Zero(b, b.expire(2), "nothing is left to be removed")
	require.Equal(b, map[journal.JobState]int64{journal.JobExpired: 1}, must(b.lists.Counts(b.ctx()))(b))
	page := must(b.lists.Jobs(b.ctx(), store.JobFilter{States: []journal.JobState{journal.JobExpired}}))(b).Jobs
	require.Equal(b, []store.JobSummary{b.view(id).JobSummary}, page)
})

var _ = test("Expiry", "open and quarantined jobs, and those without a time, stay (J7)", func(b *bench) {
	open := b.requested(oneWorker, "open")
	kept, later := b.finished("kept", collation.Never), b.finished("later", b.now()+micros(hour))
	odd := b.finished("odd", b.now())
	b.quarantine(odd)
	b.expire(100)
	b.is(journal.JobOpen, open)
	b.is(journal.JobQuarantined, odd) // a person must see it (J1)
	b.is(journal.JobCompleted, kept, later)
})

// heavy runs a job that leaves rows in every table, to be removed at once.
func (b *bench) heavy(key string) *store.JobView {
	b.Helper()
	id := b.requested(oneWorker, key)
	for i := range 8 {
		body := fmt.Appendf(nil, `"%d"`, i)
		require.NoError(b, b.s.PutPayload(b.ctx(), id, sha256.Sum256(body), body))
		r := b.request(id, "work")
		b.altered(id, results(collation.InstanceKey{Activity: "work", DAD: collation.DAD(fmt.Sprint(",0,", i+1))}, true, `1`))
		b.altered(id, comes(r.GUID,
			&collation.Pause{PauseRef: pauseRef(journal.PauseSleep, fmt.Sprint(i), ""), GUID: guid(i)}),
			func(p *collation.Plan, _ *collation.State) {
				p.Receipt = &collation.ReceiptWrite{
					GUID: guid(i), New: true, Verdict: journal.VerdictStale, Seq: p.Entry.Seq,
				}
				p.Dead = []collation.DeadLetter{{
					Job: id, Row: guid(i), Kind: journal.MessageLeg1, Activity: "work", DAD: ",0,0", Reason: "stuck",
				}}
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

var _ = test("Expiry", "what is open of it goes, in small batches (J7)", func(b *bench) {
	was, other := b.heavy("heavy"), b.finished("other", collation.Never)
	calls := 1
	for ; must(b.s.Expire(b.ctx(), 3))(b); calls++ {
		require.Less(b, calls, 1000)
		b.requireTombstone(was)
	}
	b.requireTombstone(was)
	require.GreaterOrEqual(b, calls, 3, "at most the limit of each table in a call: there are 8 letters")
	require.Empty(b, b.letters(true))
	require.Empty(b, b.due(10))
	late := b.interruptOf(was.ID, "0")
	require.Nil(b, b.stored(other, keyOf(&late)))
})

var _ = test("Expiry", "a job that is being decided waits for the next time (J3)", func(b *bench) {
	id := b.finished("k", b.now())
	b.locked(b.c, store.Want{Job: id})
	b.expire(100)
	b.is(journal.JobCompleted, id)
	require.NoError(b, b.c.Rollback(b.ctx()))
	was := b.view(id)
	b.expire(100)
	b.requireTombstone(was)
})

var _ = test("Expiry", "many sweepers of one job leave one tombstone (T8)", func(b *bench) {
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
})

// A late message ends when it is handled; Expire removes only what the job left.
var _ = test("Expiry", "late messages of the first meet nothing of the second (P29)", func(b *bench) {
	was := b.tombstone("k")
	id := b.start(b.deploy(oneWorker), "k")
	before := b.view(id)
	require.Equal(b, collation.NewJobID(b.space(), "k", 2), id)
	require.Equal(b, []any{int64(2), journal.JobOpen, collation.Never, collation.Micros(0), false},
		[]any{before.Generation, before.State, before.ExpiresAt, before.Closed, before.Ended})
	require.Equal(b, []journal.JobID{id, id},
		[]journal.JobID{must(b.s.FindJob(b.ctx(), "k"))(b), b.look(store.Want{Key: "k"}).Holders["k"].ID})
	l := b.look(store.Want{Job: was.ID, Row: was.ID.Start(), Receipt: was.ID.Start()}, store.Want{Job: id})
	require.Equal(b, map[journal.JobID]bool{was.ID: true}, l.Tombstones, "it is known that there was one")
	require.Len(b, l.States, 1)
	for _, c := range []store.Committer{b.c, b.committer()} { // nobody holds the tombstone
		l := must(c.Load(b.ctx(), []store.Want{{Job: was.ID}}, false))(b)
		require.Equal(b, []any{true, 0}, []any{l.Tombstones[was.ID], len(l.Busy)})
	}
	require.NoError(b, b.c.Rollback(b.ctx()))
	late := b.interruptOf(was.ID, "x")
	require.ErrorIs(b, failed(b.s.Interrupt(b.ctx(), late, b.mode)), store.ErrNotFound)
	b.altered(id, inserts(late)) // as from a job that held its id
	b.expire(100)
	require.Equal(b, late.GUID, b.stored(id, keyOf(&late)).GUID)
	require.NoError(b, b.s.Discard(b.ctx(), []collation.RowKey{keyOf(&late)}))
	require.Nil(b, b.stored(id, keyOf(&late)))
	require.ErrorIs(b, failed(b.s.Job(b.ctx(), was.ID)), store.ErrNotFound)
	require.Equal(b, map[journal.JobID]bool{was.ID: true, id: false},
		must(b.s.Ended(b.ctx(), []journal.JobID{was.ID, id}))(b),
		"who waits for the first is told that it is over")
	after := b.view(id)
	require.Equal(b, []any{before.Rows, before.Instances}, []any{after.Rows, after.Instances})
	b.listedOnce("k", id)
})

// orderUndo lets a job order the compensations of its request, and returns the row. That happens
// when anything but the function itself ends the request.
func (b *bench) orderUndo(parent journal.JobID, request journal.GUID, key string) collation.Row {
	b.Helper()
	child := collation.UndoID(request)
	order := must(json.Marshal(&collation.StartOrder{
		Flow: flow.UndoName, Version: "work", Key: key, Input: []byte(`{}`),
		Parent: journal.Parent{Space: b.space(), Job: parent, Activity: "work", DAD: ",0,0", Leg1: request},
	}))(b)
	row := collation.Row{
		GUID: child.Start(), Job: child, Kind: journal.MessageStart, DAD: collation.RootDAD, Body: order, NextAt: 1,
		Sender: parent, Undo: true,
	}
	b.altered(parent, inserts(row))
	row.Origin = b.view(parent).Head.Seq
	return row
}

// undoFlow returns the stored flow of compensations.
func (b *bench) undoFlow() *flow.Flow {
	b.Helper()
	f := must(flow.Undo("work"))(b)
	must(b.s.Deploy(b.ctx(), store.Deployment{Ref: collation.RefOf(f), Canonical: f.Canonical()}))(b)
	b.flows[f.Name()+" "+f.Version()] = f
	return f
}

// It expires a job that has two jobs of compensations: one that ends, and one that is
// refused. The record that they read stays until both have ended, and no other job is held up.
var _ = test("Expiry", "a job stays while its compensations are ordered or run (3.5)", func(b *bench) {
	id := b.requested(oneWorker, "k")
	request := b.request(id, "work").GUID
	row, refused := b.orderUndo(id, request, "k/undo"), b.orderUndo(id, guid(7), "k/other")
	b.finish(id, b.now())
	other, was := b.finished("other", b.now()), b.view(id)
	stays := func(why string) {
		b.Helper()
		require.Zero(b, b.expire(100), why)
		require.Equal(b, journal.JobCompleted, b.view(id).State, why)
	}
	stays("neither has begun")
	b.is(journal.JobExpired, other)
	require.NoError(b, b.spawn(&row))
	require.False(b, b.view(row.Job).Rows[0].Undo, "its own function has no compensations (V9)")
	stays("one has begun")
	require.NoError(b, b.s.Refuse(b.ctx(), &refused, nil))
	b.run(row.Job)
	stays("the other one was refused")
	b.answer(row.Job, "call", journaltest.Success(`null`))
	b.is(journal.JobCompleted, row.Job)
	b.expire(100)
	b.requireTombstone(was)
})

// It resumes a failed job. The key then names the next generation, which finds the
// results of the first one and keeps it from expiring.
var _ = test("Expiry", "a job that was resumed stays while its successor is open, or can be resumed", func(b *bench) {
	id := b.requested(oneWorker, "k")
	b.finishWith(id, b.now(), failure(journal.ResponseTerminal, "no"))
	resume := b.resuming(workKey)
	_, err := b.goesOn(id, resume)
	require.NoError(b, err)
	second, err := b.goesOn(id, resume)
	require.ErrorIs(b, err, store.ErrLost, "once")
	require.Equal(b, second, must(b.s.FindJob(b.ctx(), "k"))(b))
	require.Equal(b, second, b.view(id).Next)
	v := b.view(second)
	require.Equal(b, []any{int64(2), id, id}, []any{v.Generation, v.From.Job, v.From.Root})
	require.Equal(b, second, b.look(store.Want{Key: "k"}).Holders["k"].ID, "the key is the next one's")
	b.listedOnce("k", second)

	none := collation.InstanceKey{Activity: "none", DAD: workKey.DAD}
	pause := collation.PauseKey{InstanceKey: workKey, PauseRef: pauseRef(journal.PauseSleep, "n", "1")}
	st := b.more(second, collation.Need{
		Past: []collation.InstanceKey{workKey, none}, Pauses: []collation.PauseKey{pause}, Ends: []journal.JobID{id},
	})
	require.Len(b, st.Past[workKey], 1)
	past := st.Past[workKey][0]
	require.Equal(b, []any{int64(1), collation.CodeInternal, true},
		[]any{past.Generation, past.Result.Code, past.Seq > 0})
	require.Len(b, st.Past[none], 1)
	require.Zero(b, st.Past[none][0].Seq)
	require.Contains(b, st.PastPauses, pause)
	require.Nil(b, st.PastPauses[pause])
	require.Nil(b, st.Ends[id], "its last generation is open")

	b.expire(100)
	b.is(journal.JobFailed, id) // the next one reads it
	b.run(second)
	b.finishWith(second, collation.Never, failure(journal.ResponseTerminal, "no"))
	b.expire(100)
	b.is(journal.JobFailed, id) // so will the one that resumes that
	third := b.resume(second, workKey)
	require.Len(b, b.more(third, collation.Need{Past: []collation.InstanceKey{workKey}}).Past[workKey], 2)
	b.finish(third, collation.Never)
	b.expire(100)
	b.is(journal.JobExpired, id)
	b.is(journal.JobFailed, second) // it has its own time
	b.is(journal.JobCompleted, third)
})

// listedOnce checks that lists and counts have only the last generation of the key.
func (b *bench) listedOnce(key string, id journal.JobID) {
	b.Helper()
	page := must(b.lists.Jobs(b.ctx(), store.JobFilter{Prefix: key}))(b).Jobs
	require.Len(b, page, 1)
	require.Equal(b, id, page[0].ID)
	require.Equal(b, map[journal.JobState]int64{journal.JobOpen: 1}, must(b.lists.Counts(b.ctx()))(b))
}

// It forks a completed job before and after its result. A fork finds what stood there
// at its entry, and keeps the job from expiring.
var _ = test("Expiry", "a job that was forked stays while the fork is open", func(b *bench) {
	id := b.finished("k", b.now())
	before := b.view(id)
	result := before.Instances[1].ResultSeq
	pause := collation.PauseKey{InstanceKey: workKey, PauseRef: pauseRef(journal.PauseSleep, "n", "1")}
	var forks []journal.JobID
	for i, seq := range []int64{0, result} {
		key, at := fmt.Sprint("fork ", i), result-1+int64(i)
		fork, err := b.goesOn(id, func(st *collation.State) (*collation.Plan, collation.Inception) {
			return collation.Forked(st, collation.NewJobID(b.space(), key, 1), "ann", "again", b.mode), collation.Inception{
				Key: key, Generation: 1, From: &journal.From{
					Job: id, Generation: 1, Who: "ann", Fork: &journal.Fork{Job: id, Generation: 1, At: at},
				},
			}
		})
		require.NoError(b, err)
		st := b.more(fork, collation.Need{Past: []collation.InstanceKey{workKey}, Pauses: []collation.PauseKey{pause}})
		require.Len(b, st.Past[workKey], 1)
		past := st.Past[workKey][0]
		require.Equal(b, []any{true, int64(1), seq, seq > 0},
			[]any{past.Forked, past.Generation, past.Seq, past.Result != nil})
		require.Nil(b, st.PastPauses[pause])
		forks = append(forks, fork)
	}
	v := b.view(id)
	require.Equal(b, []any{before.Head.Seq + 2, before.State, journal.JobID{}}, []any{v.Head.Seq, v.State, v.Next}, "each fork is an entry")
	require.Equal(b, id, must(b.s.FindJob(b.ctx(), "k"))(b), "the key stays its own")

	b.expire(100)
	b.is(journal.JobCompleted, id) // the forks read it
	b.run(forks[0])
	b.finish(forks[0], collation.Never)
	b.expire(100)
	b.is(journal.JobCompleted, id) // one reads it still
	b.run(forks[1])
	b.is(journal.JobCompleted, forks[1]) // it took the result over
	b.expire(100)
	b.is(journal.JobExpired, id)
})
