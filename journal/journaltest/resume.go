package journaltest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// generationResumed resumes a failed job. The key then names the next generation, which finds the
// results of the first one and keeps it from expiring.
func generationResumed(b *bench) {
	id := b.requested(one, "k")
	b.finishWith(id, b.now(), failure(journal.ResponseTerminal, "no"))
	resume := func(st *collation.State) (*collation.Plan, collation.Inception) {
		next := collation.NewJobID(b.space(), "k", 2)
		return collation.Resumed(st, next, "ann", "again", b.mode), collation.Inception{Key: "k", Generation: 2, From: &journal.From{
			Job: id, Generation: 1, Root: id, RootGeneration: 1, Head: st.Job.Head, Activity: workKey.Activity, DAD: string(workKey.DAD), Who: "ann", Reason: "again",
		}}
	}
	_, err := b.goesOn(id, resume)
	require.NoError(b, err)
	second, err := b.goesOn(id, resume)
	require.ErrorIs(b, err, store.ErrLost, "once")
	require.Equal(b, second, got(b.s.FindJob(b.ctx(), "k"))(b))
	require.Equal(b, second, b.view(id).Next)
	v := b.view(second)
	require.Equal(b, []any{int64(2), id, id}, []any{v.Generation, v.From.Job, v.From.Root})
	require.Equal(b, second, b.look(store.Want{Key: "k"}).Holders["k"].ID, "the key is the next one's")
	b.listedOnce("k", second)

	none := collation.InstanceKey{Activity: "none", DAD: workKey.DAD}
	pause := collation.PauseKey{InstanceKey: workKey, PauseRef: pauseRef(journal.PauseSleep, "n", "1")}
	st := b.more(second, collation.Need{Past: []collation.InstanceKey{workKey, none}, Pauses: []collation.PauseKey{pause}, Ends: []journal.JobID{id}})
	require.Len(b, st.Past[workKey], 1)
	past := st.Past[workKey][0]
	require.Equal(b, []any{int64(1), collation.CodeInternal, true}, []any{past.Generation, past.Result.Code, past.Seq > 0})
	require.Len(b, st.Past[none], 1)
	require.Zero(b, st.Past[none][0].Seq)
	require.Contains(b, st.PastPauses, pause)
	require.Nil(b, st.PastPauses[pause])
	require.Nil(b, st.Ends[id], "its last generation is open")

	b.expire(100)
	b.is(journal.JobFailed, id) // the next one reads it
	b.run(second)
	b.finish(second, collation.Never)
	b.expire(100)
	b.is(journal.JobExpired, id)
	b.is(journal.JobCompleted, second)
}

// listedOnce checks that lists and counts have only the last generation of the key.
func (b *bench) listedOnce(key string, id journal.JobID) {
	b.Helper()
	page := got(b.s.Jobs(b.ctx(), store.JobFilter{Prefix: key}))(b)
	require.Len(b, page, 1)
	require.Equal(b, id, page[0].ID)
	require.Equal(b, map[journal.JobState]int64{journal.JobOpen: 1}, got(b.s.Counts(b.ctx()))(b))
}

// goesOn commits the inception of a job that goes on from another, with the other's last entry.
func (b *bench) goesOn(id journal.JobID, decide func(*collation.State) (*collation.Plan, collation.Inception)) (journal.JobID, error) {
	b.Helper()
	f := b.deploy(one)
	st := b.locked(b.c, store.Want{Job: id}).States[id]
	st.Flow = f
	p, in := decide(st)
	in.Space, in.Flow, in.Trigger, in.Input, in.Now = b.space(), st.Job.Flow, f.Trigger().Name, []byte(`{"n":7}`), st.Now
	last := store.Chain(&st.Job, p)
	in.From.Head = st.Job.Head
	return collation.NewJobID(in.Space, in.Key, in.Generation), b.commit(last, chain(collation.Incept(in, b.mode)))
}

// generationForked forks a completed job before and after its result. A fork finds what stood there
// at its entry, and keeps the job from expiring.
func generationForked(b *bench) {
	id := b.finished("k", b.now())
	before := b.view(id)
	result := before.Instances[1].ResultSeq
	pause := collation.PauseKey{InstanceKey: workKey, PauseRef: pauseRef(journal.PauseSleep, "n", "1")}
	var forks []journal.JobID
	for i, seq := range []int64{0, result} {
		key, at := fmt.Sprint("fork ", i), result-1+int64(i)
		fork, err := b.goesOn(id, func(st *collation.State) (*collation.Plan, collation.Inception) {
			return collation.Forked(st, collation.NewJobID(b.space(), key, 1), "ann", "again", b.mode), collation.Inception{
				Key: key, Generation: 1, From: &journal.From{Job: id, Generation: 1, Who: "ann", Fork: &journal.Fork{Job: id, Generation: 1, At: at}},
			}
		})
		require.NoError(b, err)
		st := b.more(fork, collation.Need{Past: []collation.InstanceKey{workKey}, Pauses: []collation.PauseKey{pause}})
		require.Len(b, st.Past[workKey], 1)
		past := st.Past[workKey][0]
		require.Equal(b, []any{true, int64(1), seq, seq > 0}, []any{past.Forked, past.Generation, past.Seq, past.Result != nil})
		require.Nil(b, st.PastPauses[pause])
		forks = append(forks, fork)
	}
	v := b.view(id)
	require.Equal(b, []any{before.Head.Seq + 2, before.State, journal.JobID{}}, []any{v.Head.Seq, v.State, v.Next}, "each fork is an entry")
	require.Equal(b, id, got(b.s.FindJob(b.ctx(), "k"))(b), "the key stays its own")

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
}
