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
	c := b.committer()
	id := b.requested(c, one, "k")
	r := b.row(id, journal.MessageRequest, "work")
	m, at := response(&r, failure(journal.ResponseTerminal, "no")), b.now(c)
	l, err := b.load(c, m)
	require.NoError(b, err)
	p, err := b.plan(c, l.States[id], m)
	require.NoError(b, err)
	p.ExpiresAt = at
	require.NoError(b, c.Commit(b.ctx(), []store.Chained{store.Chain(&l.States[id].Job, p)}))
	was := b.view(id)
	require.Equal(b, journal.JobFailed, was.State)

	next, other := b.resumes(c, id, r.DAD), b.resumes(c, id, r.DAD)
	require.NoError(b, next())
	require.ErrorIs(b, other(), store.ErrLost, "once")
	second, err := b.s.FindJob(b.ctx(), "k")
	require.NoError(b, err)
	require.Equal(b, collation.NewJobID(b.space(), "k", 2), second)
	require.Equal(b, second, b.view(id).Next)
	v := b.view(second)
	require.Equal(b, []any{int64(2), id, id}, []any{v.Generation, v.From.Job, v.From.Root})
	out, err := b.s.Start(b.ctx(), []store.Start{request(b.deploy(one), "k", `{"n":7}`)}, b.mode)
	require.NoError(b, err)
	require.Equal(b, second, out[0].Job, "the key is the next one's")

	b.listedOnce("k", second)

	l, err = c.Load(b.ctx(), []store.Want{{Job: second}}, true)
	require.NoError(b, err)
	work := collation.InstanceKey{Activity: "work", DAD: r.DAD}
	none := collation.InstanceKey{Activity: "none", DAD: r.DAD}
	pause := collation.PauseKey{InstanceKey: work, PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "n", Position: "1"}}
	require.NoError(b, c.More(b.ctx(), map[journal.JobID]*collation.Need{second: {
		Past: []collation.InstanceKey{work, none}, Pauses: []collation.PauseKey{pause}, Ends: []journal.JobID{id},
	}}))
	st := l.States[second]
	require.Len(b, st.Past[work], 1)
	require.Equal(b, []any{int64(1), collation.CodeInternal, true}, []any{st.Past[work][0].Generation, st.Past[work][0].Result.Code, st.Past[work][0].Seq > 0})
	require.Len(b, st.Past[none], 1)
	require.Zero(b, st.Past[none][0].Seq)
	require.Contains(b, st.PastPauses, pause)
	require.Nil(b, st.PastPauses[pause])
	require.Nil(b, st.Ends[id], "its last generation is open")
	require.NoError(b, c.Rollback(b.ctx()))

	b.expire(100)
	require.Equal(b, journal.JobFailed, b.view(id).State, "the next one reads it")
	b.audit(id)
	b.audit(second)
	b.run(c, second)
	b.finish(c, second, collation.Never)
	b.expire(100)
	require.Equal(b, journal.JobExpired, b.view(id).State)
	require.Equal(b, journal.JobCompleted, b.view(second).State)
	b.audit(second)
}

// listedOnce checks that lists and counts have only the last generation of the key.
func (b *bench) listedOnce(key string, id journal.JobID) {
	b.Helper()
	got, err := b.s.Jobs(b.ctx(), store.JobFilter{Prefix: key})
	page := got.Jobs
	require.NoError(b, err)
	require.Len(b, page, 1)
	require.Equal(b, id, page[0].ID)
	counts, err := b.s.Counts(b.ctx())
	require.NoError(b, err)
	require.Equal(b, map[journal.JobState]int64{journal.JobOpen: 1}, counts)
}

// resumes prepares the commit that resumes a job.
func (b *bench) resumes(c store.Committer, id journal.JobID, dad collation.DAD) func() error {
	f := b.deploy(one)
	return func() error {
		l, err := c.Load(b.ctx(), []store.Want{{Job: id}}, true)
		require.NoError(b, err)
		st := l.States[id]
		st.Flow = f
		next := collation.NewJobID(b.space(), st.Job.Key, 2)
		last := store.Chain(&st.Job, collation.Resumed(st, next, "ann", "again", b.mode))
		born := collation.Incept(collation.Inception{
			Space: b.space(), Key: st.Job.Key, Generation: 2, Flow: st.Job.Flow, Trigger: f.Trigger().Name, Input: []byte(`{"n":7}`), Now: l.Now,
			From: &journal.From{Job: id, Generation: 1, Root: id, RootGeneration: 1, Head: st.Job.Head, Activity: "work", DAD: string(dad), Who: "ann", Reason: "again"},
		}, b.mode)
		return c.Commit(b.ctx(), []store.Chained{last, store.Chain(&collation.Job{ID: next, Space: b.space(), Generation: 2}, born)})
	}
}

// generationForked forks a completed job before and after its result. A fork finds what stood there
// at its entry, and keeps the job from expiring.
func generationForked(b *bench) {
	c := b.committer()
	id := b.finished(c, "k", b.now(c))
	before := b.view(id)
	var work collation.InstanceKey
	var result int64
	for _, i := range before.Instances {
		if i.Key.Activity == "work" {
			work, result = i.Key, i.ResultSeq
		}
	}
	none := collation.PauseKey{InstanceKey: work, PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "n", Position: "1"}}
	var forks []journal.JobID
	for _, has := range []bool{false, true} {
		at, seq := result-1, int64(0)
		if has {
			at, seq = result, result
		}
		fork := b.forked(c, id, at, fmt.Sprint("fork ", at))
		forks = append(forks, fork)
		l, err := c.Load(b.ctx(), []store.Want{{Job: fork}}, true)
		require.NoError(b, err)
		require.NoError(b, c.More(b.ctx(), map[journal.JobID]*collation.Need{fork: {Past: []collation.InstanceKey{work}, Pauses: []collation.PauseKey{none}}}))
		past := l.States[fork].Past[work]
		require.Len(b, past, 1)
		require.True(b, past[0].Forked)
		require.Equal(b, int64(1), past[0].Generation)
		require.Equal(b, seq, past[0].Seq)
		require.Equal(b, has, past[0].Result != nil)
		require.Nil(b, l.States[fork].PastPauses[none])
		require.NoError(b, c.Rollback(b.ctx()))
	}
	v := b.view(id)
	require.Equal(b, before.Head.Seq+2, v.Head.Seq, "each fork is an entry")
	require.Equal(b, before.State, v.State)
	require.Zero(b, v.Next)
	found, err := b.s.FindJob(b.ctx(), "k")
	require.NoError(b, err)
	require.Equal(b, id, found, "the key stays its own")

	b.expire(100)
	require.Equal(b, journal.JobCompleted, b.view(id).State, "the forks read it")
	b.audit(id)
	b.run(c, forks[0])
	b.finish(c, forks[0], collation.Never)
	b.expire(100)
	require.Equal(b, journal.JobCompleted, b.view(id).State, "one reads it still")
	b.run(c, forks[1])
	require.Equal(b, journal.JobCompleted, b.view(forks[1]).State, "it took the result over")
	b.expire(100)
	require.Equal(b, journal.JobExpired, b.view(id).State)
	b.audit(forks...)
}

// forked commits a fork of a job.
func (b *bench) forked(c store.Committer, id journal.JobID, at int64, key string) journal.JobID {
	b.Helper()
	f := b.deploy(one)
	l, err := c.Load(b.ctx(), []store.Want{{Job: id}}, true)
	require.NoError(b, err)
	st := l.States[id]
	st.Flow = f
	fork := collation.NewJobID(b.space(), key, 1)
	last := store.Chain(&st.Job, collation.Forked(st, fork, "ann", "again", b.mode))
	born := collation.Incept(collation.Inception{
		Space: b.space(), Key: key, Generation: 1, Flow: st.Job.Flow, Trigger: f.Trigger().Name, Input: []byte(`{"n":7}`), Now: l.Now,
		From: &journal.From{Job: id, Generation: 1, Head: st.Job.Head, Who: "ann", Fork: &journal.Fork{Job: id, Generation: 1, At: at}},
	}, b.mode)
	require.NoError(b, c.Commit(b.ctx(), []store.Chained{last, store.Chain(&collation.Job{ID: fork, Space: b.space(), Generation: 1}, born)}))
	return fork
}
