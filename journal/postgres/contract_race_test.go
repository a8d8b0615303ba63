package postgres

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// everybody handles n messages at once, and counts outcomes.
func (b *bench) everybody(n int, of func(i int) *collation.Message) map[collation.Outcome]int {
	b.Helper()
	return atOnce(n, func(i int) collation.Outcome {
		p, err := b.handle(of(i))
		if b.check(err); err != nil {
			return "failed"
		}
		return p.Outcome
	})
}

// Stepwise a start is two plans, and different holders may do them, but no step is
// done twice.
var _ = test("Races", "many holders of one message: one handles it (P9, C7)", func(b *bench) {
	b.mode.Stepwise = true
	id := b.jobs(1)[0]
	row := b.view(id).Rows[0]
	n := b.everybody(8, func(int) *collation.Message { return journaltest.Message(&row) })
	require.NotZero(b, n[collation.Handled])
	require.Equal(b, 8, n[collation.Handled]+n[collation.Settled]+n[collation.NoRow])
	v := b.view(id)
	require.Len(b, v.Rows, 1)
	require.Equal(b, int64(1), v.Semaphore)
})

var _ = test("Races", "two answers to one request: one is recorded (P5)", func(b *bench) {
	r := b.asked()
	outcomes := b.everybody(8, func(i int) *collation.Message {
		return journaltest.Response(&r, journaltest.Success(fmt.Sprint(i)))
	})
	require.Equal(b, map[collation.Outcome]int{collation.Handled: 1, collation.Settled: 7}, outcomes)
	v := b.view(r.Job)
	require.Equal(b, journal.JobCompleted, v.State)
	require.Equal(b, "201100000000001", v.Instances[1].Ledger.String())
})

var _ = test("Races", "branches of one job at once (C13, I4)", func(b *bench) {
	for i := range 5 {
		id := b.requested(twoBranches, fmt.Sprint(i))
		branches := []collation.Row{b.request(id, "left"), b.request(id, "right")}
		n := b.everybody(2, func(i int) *collation.Message {
			return journaltest.Response(&branches[i], journaltest.Success(`1`))
		})
		require.Equal(b, 2, n[collation.Handled])
		b.run(id)
		b.answer(id, "next", journaltest.Success(`3`))
		require.Equal(b, journal.JobCompleted, b.view(id).State)
	}
})

// It lets a worker lease a request while its answer is being decided. Either the lease
// waits for the commit and learns that the turn was answered, or the commit loses to the lease.
var _ = test("Races", "a lease and a commit: one wins (E7, J8)", func(b *bench) {
	r := b.asked()
	leased, live := make(chan error, 1), b.live().ID()
	committed := b.attempt(journaltest.Response(&r, failure(journal.ResponseFailedAttempt, "no")),
		b.altering(func(*collation.Plan) {
			go func() {
				_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, r.Turn, "w", live)
				leased <- err
			}()
		}))
	err := <-leased
	if turn := b.request(r.Job, "work").Turn; committed == nil {
		require.ErrorIs(b, err, store.ErrStale)
		require.Equal(b, 2, turn)
	} else {
		require.ErrorIs(b, committed, store.ErrLost)
		require.NoError(b, err)
		require.Equal(b, 1, turn)
	}
})

// The first start of a run takes its lease.
var _ = test("Races", "many first runs at once: one begins (P17)", func(b *bench) {
	r := b.asked()
	b.live()
	began := atOnce(8, func(i int) string {
		_, _, err := b.s.StartEffect(b.ctx(), b.fresh(r, fmt.Sprint("w", i)), effect("pay", 0))
		if b.won(err, store.ErrStale, store.ErrLeased) {
			return fmt.Sprint("w", i)
		}
		return ""
	})
	row := b.effectsOf(r.Job, r.GUID)[0]
	require.Equal(b, map[string]int{row.Holder: 1, "": 7}, began)
	require.Equal(b, []any{r.Fence + 1, true}, []any{row.Fence, row.Live})
	require.Len(b, b.chain(r.Job, r.GUID), 1)
	b.held(r, row.Holder)
	must(b.s.Keep(b.ctx(), b.fresh(r, row.Holder)))(b)
	b.held(r, row.Holder)
})

var _ = test("Races", "the sweeper passes over rows that are being decided", func(b *bench) {
	ids := b.jobs(2)
	due := b.due(10)
	require.Len(b, due, 2, "listing takes no lock")
	b.locked(b.c, store.Want{Job: ids[0], Row: ids[0].Start()})
	for _, id := range []journal.JobID{ids[1], ids[0]} {
		out := must(b.s.Claim(b.ctx(), claims(due, true)))(b)
		require.Len(b, out, 1)
		require.Equal(b, id, out[0].Row.Job)
		require.NoError(b, b.c.Rollback(b.ctx()))
	}
})

// whole reads a job as a committer keeps it.
func (b *bench) whole(id journal.JobID) *collation.State {
	b.Helper()
	st := b.look(store.Want{Job: id, Whole: true}).States[id]
	st.Flow = b.flowOf(st)
	return st
}

// guess decides the success of a request on the hot state of its job.
func (b *bench) guess(r *collation.Row) store.Chained {
	b.Helper()
	return b.guessed(journaltest.Response(r, journaltest.Success(`1`)))
}

// guessed decides a response on the hot state of its job.
func (b *bench) guessed(m *collation.Message) store.Chained {
	b.Helper()
	base := b.whole(m.Job)
	require.True(b, base.Whole && base.Keep())
	st := base.Fork(base.Now)
	p, need := collation.Step(st, m, b.mode)
	require.Nil(b, need)
	c := store.Chain(&st.Job, p)
	c.Guard = store.GuardOf(base, []*collation.Plan{p})
	require.NotEmpty(b, c.Guard.Rows)
	return c
}

// lostHot returns the jobs that a commit names as lost; nil if it succeeded.
func (b *bench) lostHot(err error) []journal.JobID {
	b.Helper()
	if err == nil {
		return nil
	}
	lost, named := errors.AsType[*store.LostError](err)
	require.True(b, named, "%v", err)
	require.NotEmpty(b, lost.Hot)
	return lost.Hot
}

var _ = test("Hot", "a young job is read whole, and no other (W6)", func(b *bench) {
	b.c = b.hasty()
	r := b.asked()
	st, view := b.whole(r.Job), b.view(r.Job)
	require.True(b, st.Whole)
	require.Len(b, st.Instances, len(view.Instances))
	for _, i := range view.Instances {
		require.Equal(b, &i.Instance, st.Instances[i.Key])
	}
	require.Equal(b, map[journal.GUID]*collation.Row{r.GUID: &r}, st.Rows)
	require.JSONEq(b, `{"n":7}`, string(st.Results[startKey].Output))
	require.False(b, b.look(store.Want{Job: r.Job}).States[r.Job].Whole, "it was not asked for")

	waiting := b.requested(oneWorker, "waiting")
	b.altered(waiting, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	require.True(b, b.whole(waiting).Whole)

	many := b.requested(oneWorker, "many")
	b.altered(many, func(p *collation.Plan, _ *collation.State) {
		for n := range store.YoungRows {
			p.Insert = append(p.Insert,
				collation.Row{GUID: guid(n), Job: many, Kind: journal.MessageWakeUp, Activity: "work", DAD: ",0,0"})
		}
	})
	require.False(b, b.whole(many).Whole, "too many rows")

	for b.view(r.Job).Head.Seq < store.YoungSeq {
		b.altered(r.Job)
	}
	require.True(b, b.whole(r.Job).Whole)
	b.altered(r.Job)
	require.False(b, b.whole(r.Job).Whole, "too many entries")
})

// It changes the jobs of hot states in each possible way, but one.
var _ = test("Hot", "what has changed since is lost and named, and nothing is there (W6)", func(b *bench) {
	b.c = b.hasty()
	changes := map[string]func(r *collation.Row){
		"head":  func(r *collation.Row) { b.altered(r.Job) },
		"state": func(r *collation.Row) { b.quarantine(r.Job) },
		"row":   func(r *collation.Row) { b.lease(*r, "w") },
		"gone":  func(r *collation.Row) { b.must(journaltest.Response(r, journaltest.Success(`2`))) },
		"other": func(*collation.Row) {},
	}
	var plans []store.Chained
	rows := map[string]collation.Row{}
	for _, name := range slices.Sorted(maps.Keys(changes)) { // the other one before the row
		r := b.request(b.requested(oneWorker, name), "work")
		rows[name], plans = r, append(plans, b.guess(&r))
	}
	var want, lost []journal.JobID
	before := map[string]*store.JobView{}
	for name, r := range rows {
		if changes[name](&r); name != "other" {
			want = append(want, r.Job)
		}
		before[name] = b.view(r.Job)
	}
	for tries := 0; ; tries++ { // lost jobs are named before lost rows
		require.Less(b, tries, 3)
		named := b.lostHot(b.commit(plans...))
		if named == nil {
			break
		}
		for name, r := range rows {
			require.Equal(b, before[name], b.view(r.Job), "%s: nothing of the batch is there", name)
		}
		lost = append(lost, named...)
		plans = slices.DeleteFunc(plans, func(p store.Chained) bool { return slices.Contains(named, p.Plan.Job) })
	}
	require.ElementsMatch(b, want, lost)
	require.Empty(b, b.view(rows["other"].Job).Rows)
})

var _ = test("Hot", "a hot state needs no Load; one that another holds is lost (W3, W6)", func(b *bench) {
	b.c = b.hasty()
	other := b.committer()
	r := b.asked()
	plan := b.guess(&r)
	b.locked(other, store.Want{Job: r.Job, Row: r.GUID})
	require.Equal(b, []journal.JobID{r.Job}, b.lostHot(b.commit(plan)))
	require.NoError(b, other.Rollback(b.ctx()))
	require.NoError(b, b.commit(plan), "nothing has changed")
	view := b.view(r.Job)
	require.Equal(b, plan.Plan.Entry.Seq, view.Head.Seq)
	require.Empty(b, view.Rows)
})

// Its plan moves a row, as several messages of a batch may, by more than one.
var _ = test("Hot", "a row that was written since is not moved (W6)", func(b *bench) {
	b.c = b.hasty()
	r := b.asked()
	plan := b.guessed(journaltest.Response(&r, failure(journal.ResponseFailedAttempt, "no")))
	require.Len(b, plan.Plan.Update, 1)
	plan.Plan.Update[0].Rev += 10
	b.lease(r, "w")
	before := b.view(r.Job)
	require.Equal(b, []journal.JobID{r.Job}, b.lostHot(b.commit(plan)))
	require.Equal(b, before, b.view(r.Job))
})

// It begins effects on chains that were read before, in a commit without a Load.
var _ = test("Hot", "an effect decided on a chain that has changed since is lost (W6)", func(b *bench) {
	b.c = b.hasty()
	pay := effect("pay", 0)
	for name, change := range map[string]func(r collation.Row, l store.Lease){
		"nothing": nil,
		"another run": func(r collation.Row, l store.Lease) {
			require.NoError(b, b.s.HandBack(b.ctx(), l))
			b.lease(r, "other")
		},
		"an effect":     func(_ collation.Row, l store.Lease) { b.startEffect(l, effect("other", 0)) },
		"this effect":   func(_ collation.Row, l store.Lease) { b.startEffect(l, pay) },
		"its answer":    func(r collation.Row, _ store.Lease) { b.must(journaltest.Response(&r, journaltest.Success(`2`))) },
		"its job's end": func(r collation.Row, _ store.Lease) { b.quarantine(r.Job) },
	} {
		r := b.request(b.requested(oneWorker, name), "work")
		l := b.lease(r, "w")
		chain := b.look(store.Want{Chain: l.Key(), Effects: []journal.Digest{pay.Key}}).Chains[l.Key()]
		out := must(chain.Start(l, pay, b.mode))(b)
		if change != nil {
			change(r, l)
		}
		before := b.view(r.Job)
		err := b.commit(store.Chained{Plan: out.Plan})
		if change == nil {
			require.NoError(b, err)
			require.Len(b, b.effectsOf(r.Job, r.GUID), 1)
			continue
		}
		require.ErrorIs(b, err, store.ErrLost, name)
		require.Equal(b, before, b.view(r.Job), "%s: nothing of it is there", name)
	}
})

var _ = test("Hot", "whoever writes a row raises its rev (W6)", func(b *bench) {
	b.c = b.hasty()
	r := b.asked()
	now := func() collation.Row { return b.request(r.Job, "work") }
	rev := r.Rev
	raised := func(by string) {
		b.Helper()
		require.Greater(b, now().Rev, rev, "by %s", by)
		rev = now().Rev
	}
	l := b.lease(r, "w")
	raised("a lease")
	b.startEffect(l, effect("pay", 0))
	raised("the start of an effect")
	b.finishEffect(l, completed(effect("pay", 0), `1`))
	raised("the end of an effect")
	require.NoError(b, b.s.HandBack(b.ctx(), l))
	raised("handing back")
	l = must(b.s.Keep(b.ctx(), b.fresh(now(), "w2")))(b)
	raised("being kept")
	require.NoError(b, b.s.HandBack(b.ctx(), l))
	b.rewrite(now(), func(*collation.Row, collation.Micros) {})
	raised("a plan")
	require.ErrorIs(b, b.alter(r.Job, func(p *collation.Plan, _ *collation.State) {
		p.Update = append(p.Update, now())
	}), store.ErrLost, "a plan that does not")
	for _, send := range []bool{true, false} {
		b.rewrite(now(), func(r *collation.Row, now collation.Micros) { r.NextAt = now - 1 })
		rev = now().Rev
		must(b.s.Claim(b.ctx(), claims(b.due(10), send)))(b)
		raised("a claim")
	}

	b.rewrite(now(), func(r *collation.Row, _ collation.Micros) { r.Runs = store.MaxRuns })
	rev = now().Rev
	require.ErrorIs(b, failed(b.s.Store.Lease(b.ctx(), r.Job, r.GUID, r.Turn, "w3", b.live().ID())), store.ErrExhausted)
	raised("the end of its runs")

	s := b.signal("t", "rev", "1")
	require.Equal(b, store.SignalKept, b.tell(s).State)
	before := b.stored(r.Job, b.box(s)).Rev
	b.altered(r.Job, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "rev"}))
	require.Greater(b, b.stored(r.Job, b.box(s)).Rev, before, "a wait that makes it due")
})
