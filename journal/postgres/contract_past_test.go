package postgres

import (
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// resuming decides that the next generation of a job's key goes on from it, and does an instance again.
func (b *bench) resuming(again collation.InstanceKey) func(*collation.State) (*collation.Plan, collation.Inception) {
	return func(st *collation.State) (*collation.Plan, collation.Inception) {
		j := &st.Job
		from := &journal.From{
			Job: j.ID, Generation: j.Generation, Activity: again.Activity, DAD: string(again.DAD), Who: "ann", Reason: "again",
		}
		from.Root, from.RootGeneration = j.Root()
		next := collation.Inception{Key: j.Key, Generation: j.Generation + 1, From: from}
		return collation.Resumed(st, collation.NewJobID(b.space(), j.Key, next.Generation), "ann", "again", b.mode), next
	}
}

// resume begins the job that resumes another, and runs it to its requests.
func (b *bench) resume(id journal.JobID, again collation.InstanceKey) journal.JobID {
	b.Helper()
	next := must(b.goesOn(id, b.resuming(again)))(b)
	b.run(next)
	return next
}

// goesOn commits the inception of a job that goes on from another, with the other's last entry.
func (b *bench) goesOn(
	id journal.JobID, decide func(*collation.State) (*collation.Plan, collation.Inception),
) (journal.JobID, error) {
	b.Helper()
	st := b.locked(b.c, store.Want{Job: id}).States[id]
	st.Flow = b.flowOf(st)
	p, in := decide(st)
	in.Space, in.Flow, in.Trigger, in.Input, in.Now =
		b.space(), st.Job.Flow, st.Flow.Trigger().Name, []byte(`{"n":7}`), st.Now
	last := store.Chain(&st.Job, p)
	in.From.Head = st.Job.Head
	return collation.NewJobID(in.Space, in.Key, in.Generation), b.commit(last, born(collation.Incept(in, b.mode)))
}

// A worker's login chooses the keys of its effects. So it takes no place from an effect of another topic, which another
// login may write, also not in a job that goes on from this one.
var _ = test("Past", "an effect is that of an earlier generation only if its topic is the same (E1, S8)", func(b *bench) {
	first, e := b.requested(twoBranches, "k"), completed(effect("pay", 0), `1`)
	l := b.lease(b.request(first, "left"), "w1")
	b.startEffect(l, e)
	b.finishEffect(l, e)
	b.answer(first, "right", failure(journal.ResponseTerminal, "no"))
	b.is(journal.JobFailed, first)
	second := b.resume(first, collation.InstanceKey{Activity: "right", DAD: workKey.DAD})
	past := func(r *collation.Row) map[journal.Digest]*collation.PastEffect {
		want := store.Want{Chain: keyOf(r), Effects: []journal.Digest{e.Key}, Past: true}
		return b.look(want).Chains[want.Chain].Past
	}
	left, right := b.request(second, "left"), b.request(second, "right")
	was := past(&left)[e.Key]
	require.NotNil(b, was)
	require.Equal(b, []any{int64(1), l.Request, `1`}, []any{was.Generation, was.Request, string(was.Result)})
	require.Empty(b, past(&right))

	l = b.lease(left, "w1")
	l.Resumes = true
	require.Equal(b, `1`, string(b.startEffect(l, effect("pay", 0)).Result))
	b.answer(second, "left", failure(journal.ResponseTerminal, "no"))
	require.Empty(b, past(&left), "nobody begins an effect of a request that has gone")
})

// Its second generation takes over the pause, and then undoes what it has done. So the third one waits
// anew, whatever the first one says.
var _ = test("Past", "of a function that was undone no pause is taken over (3.5, E12)", func(b *bench) {
	sleep := journal.Pause{PauseRef: pauseRef(journal.PauseSleep, "n", "1"), For: 1000}
	suspends := &journal.Response{
		Kind: journal.ResponseSuspended, Code: collation.CodeOK, Pauses: []journal.Pause{sleep},
	}
	pause := collation.PauseKey{InstanceKey: workKey, PauseRef: sleep.PauseRef}
	past := func(id journal.JobID) *collation.PastPause {
		return b.more(id, collation.Need{Pauses: []collation.PauseKey{pause}}).PastPauses[pause]
	}
	first := b.requested(oneWorker, "k")
	b.answer(first, "work", suspends)
	b.answer(first, "work", failure(journal.ResponseTerminal, "no"))
	second := b.resume(first, workKey)
	require.Equal(b, int64(1), past(second).Generation)
	b.answer(second, "work", suspends)
	r, undo := b.request(second, "work"), effectAt("undo", store.ClassUndo, "2")
	l := b.lease(r, "w1")
	b.startEffect(l, undo)
	b.finishEffect(l, completed(undo, `null`))
	b.must(journaltest.Response(&r, failure(journal.ResponseTerminal, "no")))
	require.Nil(b, past(b.resume(second, workKey)))
})
