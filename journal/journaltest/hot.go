package journaltest

import (
	"errors"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var hots = map[string]func(*bench){
	"a young job is read whole, and no other (W6)":                        hotWhole,
	"a decision on a hot state is committed without a Load (W6)":          hotCommit,
	"what has changed since is lost and named, and nothing is there (W6)": hotLost,
	"a job that another transaction holds is lost at once (W3, W6)":       hotHeld,
	"whoever writes a row raises its rev (W6)":                            hotRev,
}

// hot reads a whole job, as a committer keeps it.
func (b *bench) hot(c store.Committer, id journal.JobID) *collation.State {
	b.Helper()
	st := b.whole(c, id)
	require.True(b, st.Whole)
	require.True(b, st.Keep())
	return st
}

func (b *bench) whole(c store.Committer, id journal.JobID) *collation.State {
	b.Helper()
	l, err := c.Load(b.ctx(), []store.Want{{Job: id, Whole: true}}, true)
	require.NoError(b, err)
	require.NoError(b, c.Rollback(b.ctx()))
	st := l.States[id]
	st.Flow = b.flows[st.Job.Flow.Name+" "+st.Job.Flow.Version]
	return st
}

// guess decides the response to a request on a hot state.
func (b *bench) guess(base *collation.State, r *collation.Row) store.Chained {
	b.Helper()
	st := base.Fork(base.Now)
	p, need := collation.Step(st, response(r, success(`1`)), b.mode)
	require.Nil(b, need)
	require.Equal(b, collation.Handled, p.Outcome)
	c := store.Chain(&st.Job, p)
	c.Guard = store.GuardOf(base, []*collation.Plan{p})
	require.NotEmpty(b, c.Guard.Rows)
	return c
}

func hotWhole(b *bench) {
	c := b.hasty()
	r := b.asked(c)
	st := b.whole(c, r.Job)
	require.True(b, st.Whole)
	view := b.view(r.Job)
	require.Len(b, st.Instances, len(view.Instances))
	for _, i := range view.Instances {
		require.Equal(b, &i.Instance, st.Instances[i.Key])
	}
	require.Equal(b, map[journal.GUID]*collation.Row{r.GUID: &r}, st.Rows)
	require.JSONEq(b, `{"n":7}`, string(st.Results[collation.InstanceKey{Activity: "start", DAD: collation.RootDAD}].Output))

	l, err := c.Load(b.ctx(), []store.Want{{Job: r.Job}}, true)
	require.NoError(b, err)
	require.False(b, l.States[r.Job].Whole, "it was not asked for")
	require.NoError(b, c.Rollback(b.ctx()))

	waiting := b.requested(c, one, "waiting")
	b.altered(c, waiting, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	require.False(b, b.whole(c, waiting).Whole, "a signal may end its wait")

	many := b.requested(c, one, "many")
	b.altered(c, many, func(p *collation.Plan, _ *collation.State) {
		for n := range store.YoungRows {
			p.Insert = append(p.Insert, collation.Row{GUID: guid(n), Job: many, Kind: journal.MessageWakeUp, Activity: "work", DAD: ",0,0"})
		}
	})
	require.False(b, b.whole(c, many).Whole, "too many rows")

	for range store.YoungSeq {
		require.True(b, b.whole(c, r.Job).Whole)
		if b.view(r.Job).Head.Seq == store.YoungSeq {
			break
		}
		b.altered(c, r.Job, func(*collation.Plan, *collation.State) {})
	}
	b.altered(c, r.Job, func(*collation.Plan, *collation.State) {})
	require.False(b, b.whole(c, r.Job).Whole, "too many entries")
}

func hotCommit(b *bench) {
	c := b.hasty()
	r := b.asked(c)
	st := b.hot(c, r.Job)
	plan := b.guess(st, &r)
	require.NoError(b, c.Commit(b.ctx(), []store.Chained{plan}))
	view := b.view(r.Job)
	require.Equal(b, plan.Plan.Entry.Seq, view.Head.Seq)
	require.Empty(b, view.Rows)
	b.audit(r.Job)
	err := c.Commit(b.ctx(), []store.Chained{plan})
	lost, named := errors.AsType[*store.LostError](err)
	require.True(b, named, "%v", err)
	require.Equal(b, []journal.JobID{r.Job}, lost.Hot)
	b.audit(r.Job)
}

// hotLost changes the job of one of two hot states in each possible way.
func hotLost(b *bench) {
	c := b.hasty()
	alter := map[string]func(r *collation.Row){
		"head": func(r *collation.Row) { b.altered(c, r.Job, func(*collation.Plan, *collation.State) {}) },
		"state": func(r *collation.Row) {
			b.altered(c, r.Job, func(p *collation.Plan, _ *collation.State) { p.NewState = journal.JobQuarantined })
		},
		"row":   func(r *collation.Row) { b.lease(*r, "w") },
		"gone":  func(r *collation.Row) { b.must(c, response(r, success(`2`))) },
		"other": func(*collation.Row) {},
	}
	var plans []store.Chained
	rows := map[string]collation.Row{}
	var want []journal.JobID
	for name := range alter {
		r := b.row(b.requested(c, one, name), journal.MessageRequest, "work")
		rows[name] = r
		plans = append(plans, b.guess(b.hot(c, r.Job), &r))
	}
	for name, change := range alter {
		r := rows[name]
		if change(&r); name != "other" {
			want = append(want, r.Job)
		}
	}
	before := map[string]*store.JobView{}
	for name, r := range rows {
		before[name] = b.view(r.Job)
	}
	var got []journal.JobID
	for tries := 0; ; tries++ { // lost jobs are named before lost rows
		require.Less(b, tries, 3)
		err := c.Commit(b.ctx(), plans)
		if err == nil {
			break
		}
		lost, named := errors.AsType[*store.LostError](err)
		require.True(b, named, "%v", err)
		require.NotEmpty(b, lost.Hot)
		got = append(got, lost.Hot...)
		for name, r := range rows {
			require.Equal(b, before[name], b.view(r.Job), "%s: nothing of the batch is there", name)
		}
		left := plans[:0:0]
		for _, p := range plans {
			if !slices.Contains(lost.Hot, p.Plan.Job) {
				left = append(left, p)
			}
		}
		plans = left
	}
	require.ElementsMatch(b, want, got)
	require.Empty(b, b.view(rows["other"].Job).Rows)
	b.audit(rows["other"].Job)
}

func hotHeld(b *bench) {
	c, other := b.hasty(), b.committer()
	r := b.asked(c)
	plan := b.guess(b.hot(c, r.Job), &r)
	_, err := other.Load(b.ctx(), []store.Want{{Job: r.Job, Row: r.GUID}}, true)
	require.NoError(b, err)
	err = c.Commit(b.ctx(), []store.Chained{plan})
	lost, named := errors.AsType[*store.LostError](err)
	require.True(b, named, "%v", err)
	require.Equal(b, []journal.JobID{r.Job}, lost.Hot)
	require.NoError(b, other.Rollback(b.ctx()))
	require.NoError(b, c.Commit(b.ctx(), []store.Chained{plan}), "nothing has changed")
	b.audit(r.Job)
}

func hotRev(b *bench) {
	c := b.hasty()
	r := b.asked(c)
	rev := r.Rev
	raised := func(by string) {
		b.Helper()
		now := b.row(r.Job, journal.MessageRequest, "work").Rev
		require.Greater(b, now, rev, "by %s", by)
		rev = now
	}
	l := b.lease(r, "w")
	raised("a lease")
	b.startEffect(l, effect("pay", 0))
	raised("the start of an effect")
	b.finishEffect(l, completed(effect("pay", 0), `1`))
	raised("the end of an effect")
	require.NoError(b, b.s.HandBack(b.ctx(), l))
	raised("handing back")
	kept, err := b.s.Keep(b.ctx(), b.fresh(b.row(r.Job, journal.MessageRequest, "work"), "w2"))
	require.NoError(b, err)
	raised("being kept")
	require.NoError(b, b.s.HandBack(b.ctx(), kept))
	raised("handing back")
	b.rewrite(c, r.Job, b.row(r.Job, journal.MessageRequest, "work"), func(*collation.Row, collation.Micros) {})
	raised("a plan")
	require.ErrorIs(b, b.alter(c, r.Job, func(p *collation.Plan, _ *collation.State) {
		p.Update = append(p.Update, b.row(r.Job, journal.MessageRequest, "work"))
	}), store.ErrLost, "a plan that does not")
	hurried := b.row(b.requested(c, hasty, "hurried"), journal.MessageRequest, "work")
	b.overdue(1)
	require.Greater(b, b.view(hurried.Job).Rows[0].Rev, hurried.Rev, "by being overdue")
	for _, send := range []bool{true, false} {
		b.rewrite(c, r.Job, b.row(r.Job, journal.MessageRequest, "work"), func(r *collation.Row, now collation.Micros) { r.NextAt = now - 1 })
		raised("a plan")
		_, err = b.s.Claim(b.ctx(), claims(b.due(10), send))
		require.NoError(b, err)
		raised("a claim")
	}

	s := b.signal("t", "rev", "1")
	require.Equal(b, store.SignalKept, b.tell(s).State)
	before := b.stored(c, r.Job, b.box(s)).Rev
	b.altered(c, r.Job, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "rev"}))
	require.Greater(b, b.stored(c, r.Job, b.box(s)).Rev, before, "a wait that makes it due")
}
