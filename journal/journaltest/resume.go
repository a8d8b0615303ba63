package journaltest

import (
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
	page, err := b.s.Jobs(b.ctx(), store.JobFilter{Prefix: key})
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
