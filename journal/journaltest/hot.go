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
func (b *bench) hot(id journal.JobID) *collation.State {
	b.Helper()
	st := b.whole(id)
	require.True(b, st.Whole)
	require.True(b, st.Keep())
	return st
}

func (b *bench) whole(id journal.JobID) *collation.State {
	b.Helper()
	l := b.look(store.Want{Job: id, Whole: true})
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
	r := b.asked()
	st := b.whole(r.Job)
	require.True(b, st.Whole)
	view := b.view(r.Job)
	require.Len(b, st.Instances, len(view.Instances))
	for _, i := range view.Instances {
		require.Equal(b, &i.Instance, st.Instances[i.Key])
	}
	require.Equal(b, map[journal.GUID]*collation.Row{r.GUID: &r}, st.Rows)
	require.JSONEq(b, `{"n":7}`, string(st.Results[collation.InstanceKey{Activity: "start", DAD: collation.RootDAD}].Output))

	l := b.locked(b.c, store.Want{Job: r.Job})
	require.False(b, l.States[r.Job].Whole, "it was not asked for")
	require.NoError(b, b.c.Rollback(b.ctx()))

	waiting := b.requested(one, "waiting")
	b.altered(waiting, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	require.False(b, b.whole(waiting).Whole, "a signal may end its wait")

	many := b.requested(one, "many")
	b.altered(many, func(p *collation.Plan, _ *collation.State) {
		for n := range store.YoungRows {
			p.Insert = append(p.Insert, collation.Row{GUID: guid(n), Job: many, Kind: journal.MessageWakeUp, Activity: "work", DAD: ",0,0"})
		}
	})
	require.False(b, b.whole(many).Whole, "too many rows")

	for range store.YoungSeq {
		require.True(b, b.whole(r.Job).Whole)
		if b.view(r.Job).Head.Seq == store.YoungSeq {
			break
		}
		b.altered(r.Job, func(*collation.Plan, *collation.State) {})
	}
	b.altered(r.Job, func(*collation.Plan, *collation.State) {})
	require.False(b, b.whole(r.Job).Whole, "too many entries")
}

func hotCommit(b *bench) {
	r := b.asked()
	st := b.hot(r.Job)
	plan := b.guess(st, &r)
	require.NoError(b, b.c.Commit(b.ctx(), []store.Chained{plan}))
	view := b.view(r.Job)
	require.Equal(b, plan.Plan.Entry.Seq, view.Head.Seq)
	require.Empty(b, view.Rows)
	err := b.c.Commit(b.ctx(), []store.Chained{plan})
	lost, named := errors.AsType[*store.LostError](err)
	require.True(b, named, "%v", err)
	require.Equal(b, []journal.JobID{r.Job}, lost.Hot)
}

// hotLost changes the job of one of two hot states in each possible way.
func hotLost(b *bench) {
	b.odd = true
	alter := map[string]func(r *collation.Row){
		"head": func(r *collation.Row) { b.altered(r.Job, func(*collation.Plan, *collation.State) {}) },
		"state": func(r *collation.Row) {
			b.altered(r.Job, func(p *collation.Plan, _ *collation.State) { p.NewState = journal.JobQuarantined })
		},
		"row":   func(r *collation.Row) { b.lease(*r, "w") },
		"gone":  func(r *collation.Row) { b.must(response(r, success(`2`))) },
		"other": func(*collation.Row) {},
	}
	var plans []store.Chained
	rows := map[string]collation.Row{}
	var want []journal.JobID
	for name := range alter {
		r := b.request(b.requested(one, name), "work")
		rows[name] = r
		plans = append(plans, b.guess(b.hot(r.Job), &r))
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
		err := b.c.Commit(b.ctx(), plans)
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
}

func hotHeld(b *bench) {
	other := b.committer()
	r := b.asked()
	plan := b.guess(b.hot(r.Job), &r)
	b.locked(other, store.Want{Job: r.Job, Row: r.GUID})
	err := b.c.Commit(b.ctx(), []store.Chained{plan})
	lost, named := errors.AsType[*store.LostError](err)
	require.True(b, named, "%v", err)
	require.Equal(b, []journal.JobID{r.Job}, lost.Hot)
	require.NoError(b, other.Rollback(b.ctx()))
	require.NoError(b, b.c.Commit(b.ctx(), []store.Chained{plan}), "nothing has changed")
}

func hotRev(b *bench) {
	r := b.asked()
	rev := r.Rev
	raised := func(by string) {
		b.Helper()
		now := b.request(r.Job, "work").Rev
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
	kept := got(b.s.Keep(b.ctx(), b.fresh(b.request(r.Job, "work"), "w2")))(b)
	raised("being kept")
	require.NoError(b, b.s.HandBack(b.ctx(), kept))
	raised("handing back")
	b.rewrite(r.Job, b.request(r.Job, "work"), func(*collation.Row, collation.Micros) {})
	raised("a plan")
	require.ErrorIs(b, b.alter(r.Job, func(p *collation.Plan, _ *collation.State) {
		p.Update = append(p.Update, b.request(r.Job, "work"))
	}), store.ErrLost, "a plan that does not")
	hurried := b.request(b.requested(hasty, "hurried"), "work")
	b.overdue(1)
	require.Greater(b, b.view(hurried.Job).Rows[0].Rev, hurried.Rev, "by being overdue")
	for _, send := range []bool{true, false} {
		b.rewrite(r.Job, b.request(r.Job, "work"), func(r *collation.Row, now collation.Micros) { r.NextAt = now - 1 })
		raised("a plan")
		got(b.s.Claim(b.ctx(), claims(b.due(10), send)))(b)
		raised("a claim")
	}

	s := b.signal("t", "rev", "1")
	require.Equal(b, store.SignalKept, b.tell(s).State)
	before := b.stored(r.Job, b.box(s)).Rev
	b.altered(r.Job, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "rev"}))
	require.Greater(b, b.stored(r.Job, b.box(s)).Rev, before, "a wait that makes it due")
}
