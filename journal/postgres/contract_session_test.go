package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// session opens a session.
func (b *bench) session(name string, lease time.Duration) store.Session {
	b.Helper()
	return b.open(store.Process{Name: name, Lease: lease})
}

func (b *bench) open(p store.Process) store.Session {
	b.Helper()
	s := must(b.s.OpenSession(b.ctx(), p))(b)
	b.Cleanup(func() { _ = s.End(b.ctx()) }) // closes its connection
	return s
}

// renewed renews a session, and returns the sessions that it ended.
func (b *bench) renewed(s store.Session) []string {
	ended, err := s.Renew(b.ctx(), store.Doing{})
	b.check(err)
	return ended
}

// letDie waits until the lease of a session, at most a span, has passed without a renewal and
// another session has ended it.
func (b *bench) letDie(name string) {
	b.Helper()
	looks := b.looks()
	b.passing(func() bool { return slices.Contains(b.renewed(looks), name) })
}

// looks opens a session that can end others once it was renewed for its own lease, which is
// longer than theirs.
func (b *bench) looks() store.Session { return b.session("looks", 10*lasting) }

// passing lets time pass in steps of a fraction of a span until reached. After each it waits for
// what the store does in its own time.
func (b *bench) passing(reached func() bool) {
	b.Helper()
	looks := 0
	b.waits(func() bool {
		if looks++; looks%10 == 1 && looks < 1000 { // what lasts an hour stays
			b.clock.Advance(lasting / 2)
		}
		return reached()
	})
}

// freed returns a row after the end of its holder's session, except for its due time. It is sent
// again without a look (T2).
func freed(r collation.Row) collation.Row {
	r.Holder, r.Session, r.TurnSent = "", 0, collation.NoTurn
	r.Fence++
	r.Rev++
	return r
}

var _ = test("Sessions", "one that is not renewed is ended by another, and what it held is free (W8)", func(b *bench) {
	id := b.requested(twoBranches, "forked")
	dies := b.session("dies", lasting)
	old := b.leaseFor(b.request(id, "left"), "w", dies)
	b.leaseFor(b.request(id, "right"), "w", dies)
	b.rewrite(b.request(id, "right"), func(r *collation.Row, now collation.Micros) {
		r.Held, r.NextAt = collation.HeldParked, now+micros(hour)
	})
	mine := b.lease(b.asked(), "w")
	left, right := b.request(id, "left"), b.request(id, "right")
	other := b.request(mine.Job, "work")
	require.Empty(b, b.due(10))
	b.letDie("dies")
	due := b.due(10)
	require.Len(b, due, 1)
	require.Equal(b, left.GUID, due[0].GUID)
	want := freed(left)
	want.NextAt = b.request(id, "left").NextAt
	require.Equal(b, want, b.request(id, "left"))
	require.Equal(b, freed(right), b.request(id, "right"), "what is held stays so")
	require.Equal(b, other, b.request(mine.Job, "work"), "the others keep what they have")
	require.Empty(b, b.renewed(b.live()), "it is ended once")
	require.ErrorIs(b, failed(dies.Renew(b.ctx(), store.Doing{})), store.ErrStale)
	l := b.lease(left, "w2") // it is taken over (E9)
	require.Equal(b, []any{old.Fence + 2, 2}, []any{l.Fence, l.Runs}, "one by the end, one by the new run")
	require.ErrorIs(b, failed(b.s.Keep(b.ctx(), old)), store.ErrStale)
	require.ErrorIs(b, b.s.HandBack(b.ctx(), old), store.ErrStale)
	must(b.s.Keep(b.ctx(), l))(b)
})

// Two processes are cut off for longer than their leases; one of them comes back.
var _ = test("Sessions", "who was cut off himself declares nobody dead (W8)", func(b *bench) {
	lease := 4 * lasting
	back := b.session("back", lease)
	b.session("dies", lease)
	opened := b.now()
	b.passing(func() bool { return b.now() > opened+micros(lease) })
	heard := b.now()
	b.passing(func() bool { return slices.Contains(b.renewed(back), "dies") })
	require.GreaterOrEqual(b, b.now()-heard, micros(lease), "a full lease has passed again")
})

var _ = test("Sessions", "one that is renewed is not ended (W8)", func(b *bench) {
	lease := 10 * lasting
	s, live := b.session("renewed", lease), b.looks()
	opened := b.now()
	b.passing(func() bool {
		must(s.Renew(b.ctx(), store.Doing{}))(b)
		require.Empty(b, b.renewed(live))
		return b.now() > opened+2*micros(lease)
	})
})

var _ = test("Sessions", "its end frees what it held at once, and its id is never given again (W8)", func(b *bench) {
	r := b.asked()
	s := b.session("ends", hour)
	b.leaseFor(r, "w", s)
	held := b.request(r.Job, "work")
	require.Empty(b, b.renewed(b.live()))
	require.Greater(b, b.live().Next(), time.Minute)
	require.NoError(b, s.End(b.ctx()))
	row := b.request(r.Job, "work")
	held.NextAt = row.NextAt
	require.Equal(b, freed(held), row)
	require.Len(b, b.due(10), 1)
	require.Empty(b, b.renewed(b.live()), "nothing is left of it")
	require.Zero(b, b.live().Next())
	require.ErrorIs(b, failed(s.Renew(b.ctx(), store.Doing{})), store.ErrStale)
	require.Greater(b, b.session("ends", hour).ID(), s.ID())
})

var _ = test("Sessions", "what it may not have sent is sent again (W8, T2)", func(b *bench) {
	f := b.deploy(oneWorker)
	dies := b.session("dies", lasting)
	send := func(key string, by store.Session) journal.JobID {
		b.Helper()
		id, of := b.start(f, key), claims(b.due(10), true)
		require.Len(b, of, 1)
		if of[0].Session = by.ID(); key == "lost" {
			of[0].Again = 30 * time.Second // as rows that were sent mostly have; the others are not due meanwhile
		}
		out := must(b.s.Claim(b.ctx(), of))(b)
		require.Equal(b, by.ID(), out[0].Row.Session)
		return id
	}
	lost, old, others := send("lost", dies), send("old", dies), send("others", b.live())
	b.rewrite(b.view(old).Rows[0], func(r *collation.Row, now collation.Micros) {
		r.PublishedAt = now - micros(store.Unpublished+hour)
	})
	want := map[journal.JobID]collation.Row{}
	for _, id := range []journal.JobID{lost, old, others} {
		want[id] = b.view(id).Rows[0]
	}
	b.letDie("dies")
	row := b.view(lost).Rows[0]
	sent := want[lost]
	sent.Session, sent.TurnSent, sent.Rev, sent.NextAt = 0, collation.NoTurn, sent.Rev+1, row.NextAt
	require.Equal(b, sent, row)
	due := b.due(10)
	require.Len(b, due, 1)
	require.Equal(b, lost, due[0].Job)
	require.NotEqual(b, due[0].Turn, due[0].TurnSent, "nobody looks whether a queue has it, though only requests have turns")
	require.Equal(b, want[old], b.view(old).Rows[0], "it is known to be sent")
	require.Equal(b, want[others], b.view(others).Rows[0])
})

// overBy says that a plan was refused because the session of its run has ended.
func overBy(err error) bool {
	lost, named := errors.AsType[*store.LostError](err)
	return named && lost.Session
}

var _ = test("Sessions", "nothing is taken for one that has ended (W8)", func(b *bench) {
	r := b.asked()
	s := b.session("ends", hour)
	require.NoError(b, s.End(b.ctx()))
	before := b.view(r.Job)
	for _, id := range []int64{s.ID(), s.ID() + 1000} { // or a session that never existed
		require.ErrorIs(b, failed(b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w", id)), store.ErrStale)
		l := b.fresh(r, "w")
		l.Session = id
		require.ErrorIs(b, failed(b.s.Keep(b.ctx(), l)), store.ErrStale)
		_, _, err := b.s.StartEffect(b.ctx(), l, effect("pay", 0))
		require.True(b, overBy(err), "%v", err)
		_, err = b.s.FinishEffect(b.ctx(), l, completed(effectAt("now", store.ClassPure, ""), `1`), false)
		require.True(b, overBy(err), "%v", err)
		calls := 0
		_, err = b.s.TxEffect(b.ctx(), l, effectAt("rows", store.ClassTx, ""), body(&calls, resulting(`1`), nil))
		require.True(b, overBy(err), "%v", err)
		require.Equal(b, before, b.view(r.Job))
		require.Empty(b, b.chain(r.Job, r.GUID))
	}
})

// A session ends while a row is taken for it. Whichever comes first, the row is
// freed or is not taken.
var _ = test("Sessions", "its end and what is taken for it, at once (W8)", func(b *bench) {
	live := b.looks()
	var ids []journal.JobID
	for i := range 4 {
		ids = append(ids, b.requested(oneWorker, fmt.Sprint(i)))
	}
	takes := []func(store.Lease) error{
		func(l store.Lease) error {
			_, _, err := b.s.StartEffect(b.ctx(), l, effectAt(l.Holder, store.ClassGuarded, ""))
			return err
		},
		func(l store.Lease) error { _, err := b.s.Keep(b.ctx(), l); return err },
		func(l store.Lease) error {
			_, err := b.s.FinishEffect(b.ctx(), l, completed(effectAt(l.Holder, store.ClassPure, ""), `1`), false)
			return err
		},
	}
	over, done := context.WithCancel(b.ctx())
	done()
	for round := range 60 {
		s := b.session("dies", time.Millisecond)
		b.tick()
		b.tick()
		together(len(ids)+1, func(i int) {
			switch {
			case i < len(ids):
				l := b.fresh(b.request(ids[i], "work"), fmt.Sprint("w", round))
				l.Session = s.ID()
				if err := takes[(round+i)%len(takes)](l); !overBy(err) && !errors.Is(err, store.ErrStale) {
					b.check(err)
				}
			case round%2 == 0:
				b.check(s.End(b.ctx()))
			default:
				b.renewed(live)
			}
		})
		_ = s.End(over) // closes its connection
		b.passing(func() bool {
			b.renewed(live)
			return !slices.ContainsFunc(ids, func(id journal.JobID) bool { return b.view(id).Rows[0].Holder != "" })
		})
	}
})

var _ = test("Sessions", "a row that somebody writes is freed later (W8)", func(b *bench) {
	r, free := b.asked(), b.request(b.requested(oneWorker, "free"), "work")
	dies, live := b.session("dies", lasting), b.looks()
	b.leaseFor(r, "w", dies)
	held := b.request(r.Job, "work")
	b.locked(b.c, store.Want{Job: r.Job, Row: r.GUID})
	l := b.fresh(free, "w")
	l.Session = dies.ID()
	b.passing(func() bool { // until nothing can be taken for it
		if ended := b.renewed(live); len(ended) > 0 {
			b.Errorf("ended: %v", ended)
		}
		_, err := b.s.Keep(b.ctx(), l)
		return errors.Is(err, store.ErrStale)
	})
	require.Equal(b, held, b.request(r.Job, "work"))
	require.NoError(b, b.c.Rollback(b.ctx()))
	b.passing(func() bool { return slices.Contains(b.renewed(live), "dies") })
	require.Empty(b, b.request(r.Job, "work").Holder)
})

// It asks for leases of requests to which something happened since.
var _ = test("Sessions", "which leases are none any more, by their places (W8)", func(b *bench) {
	var leases []store.Lease
	var want []store.LostLease
	for _, c := range []struct {
		src, activity string
		lost, closed  bool
		since         func(l store.Lease, r collation.Row)
	}{
		{src: oneWorker, activity: "work"},
		{src: twoBranches, activity: "right"},
		{src: twoBranches, activity: "left", lost: true, since: func(l store.Lease, _ collation.Row) {
			b.answer(l.Job, "left", journaltest.Success(`1`))
		}},
		{src: oneWorker, activity: "work", lost: true, since: func(l store.Lease, _ collation.Row) {
			b.answer(l.Job, "work", failure(journal.ResponseFailedAttempt, "no"))
		}},
		{src: oneWorker, activity: "work", lost: true, since: func(l store.Lease, r collation.Row) {
			require.NoError(b, b.s.HandBack(b.ctx(), l))
			b.lease(r, "another")
		}},
		{src: twoBranches, activity: "right", lost: true, closed: true, since: func(l store.Lease, _ collation.Row) {
			b.answer(l.Job, "left", failure(journal.ResponseTerminal, "declined"))
		}},
		{src: oneWorker, activity: "work", lost: true, since: func(l store.Lease, _ collation.Row) {
			require.NoError(b, b.s.HandBack(b.ctx(), l))
		}},
		{src: oneWorker, activity: "work", lost: true, since: func(_ store.Lease, r collation.Row) {
			b.rewrite(r, func(r *collation.Row, _ collation.Micros) { r.Held = collation.HeldStuck })
		}},
	} {
		place := len(leases)
		r := b.request(b.requested(c.src, fmt.Sprint(place)), c.activity)
		l := b.lease(r, fmt.Sprint("w", place))
		if leases = append(leases, l); c.since != nil {
			c.since(l, r)
		}
		if c.lost {
			want = append(want, store.LostLease{Place: place, Closed: c.closed})
		}
	}
	leases = append(leases, store.Lease{Job: journal.JobID{1}, Request: guid(1), Turn: 1, Holder: "w"})
	want = append(want, store.LostLease{Place: len(leases) - 1})
	require.ElementsMatch(b, want, must(b.live().Lost(b.ctx(), leases))(b))
	require.Empty(b, must(b.live().Lost(b.ctx(), nil))(b))
})

var _ = test("Sessions", "what it holds is listed (W8)", func(b *bench) {
	var want []store.Lease
	of := b.session("holds", hour)
	for i := range 3 {
		want = append(want, b.leaseFor(b.request(b.requested(oneWorker, fmt.Sprint(i)), "work"), fmt.Sprint("w", i), of))
		want[i].Generation, want[i].Runs = 0, 0 // not needed
	}
	b.answer(want[2].Job, "work", journaltest.Success(`1`))
	b.lease(b.request(b.requested(oneWorker, "of another"), "work"), "w")
	held := must(of.Held(b.ctx()))(b)
	for i := range held {
		held[i].Generation, held[i].Runs = 0, 0
	}
	require.ElementsMatch(b, want[:2], held)
})

var _ = test("Sessions", "a topic is early nowhere once a process that ran it early was declared dead, and not if it has drained (L4)", func(b *bench) {
	topics := []string{"t.a", "t.b"}
	b.open(store.Process{Name: "killed", Topics: topics, Early: topics[:1], Lease: lasting})
	own := b.open(store.Process{Name: "own", Lease: lasting})
	require.Empty(b, own.Killers())
	b.passing(func() bool {
		b.renewed(own)
		return len(own.Killers()) > 0
	})
	require.Equal(b, topics[:1], own.Killers())
	drained := b.open(store.Process{Name: "drained", Topics: topics, Early: topics, Lease: lasting})
	require.Equal(b, topics[:1], drained.Killers(), "a new process knows it from the start")
	require.NoError(b, drained.End(b.ctx()))
	b.renewed(own)
	require.Equal(b, topics[:1], own.Killers())
})

var _ = test("Sessions", "the processes that live, what they do, and how many are engines (7.6)", func(b *bench) {
	both := store.Process{
		Name: "both", Build: "v1", Roles: []string{"engine", "workers"}, Topics: []string{"pay.charge", "pay.refund"}, Lanes: 8, Engine: true, Lease: hour,
		Early: []string{"pay.refund"},
	}
	bare := store.Process{Name: "bare", Lease: hour}
	first := b.open(both)
	b.open(store.Process{Name: "gone", Topics: []string{"x"}, Engine: true, Lease: lasting})
	second := b.open(bare)
	views := func() []store.ProcessView { return must(b.s.Processes(b.ctx()))(b) }
	b.passing(func() bool { return len(views()) == 2 })
	list := views()
	require.Equal(b, []store.Process{both, bare}, []store.Process{list[0].Process, list[1].Process})
	require.Empty(b, list[0].Ran)
	silent := must(b.s.Silent(b.ctx()))(b)
	require.Len(b, silent, 1, "nobody has declared it dead")
	require.Equal(b, "gone", silent[0].Name)
	engines := func(s store.Session) int {
		b.renewed(s)
		return s.Engines()
	}
	b.passing(func() bool { return engines(second) == 1 })
	require.Equal(b, 1, engines(first), "itself")
	require.Empty(b, list[0].Troubles)
	troubles := make([]store.Trouble, store.MaxTroubles+1)
	for i := range troubles {
		troubles[i] = store.Trouble{Kind: "room", Name: fmt.Sprintf("topic.%d", i), Queue: "work.x", Text: "it is \"full\",\n\tand \\ waits", Since: 7}
	}
	does := store.Doing{
		Ran: []int64{7, 1 << 40}, Busy: store.Busy{For: 7 * time.Second, Job: journal.JobID{1}, Message: guid(2)},
		Troubles: troubles, Early: []store.EarlyRuns{{Kept: 3, Late: 2, Dropped: 1, Mean: 4567}},
	}
	must(first.Renew(b.ctx(), does))(b)
	list = views()
	does.Troubles = troubles[:store.MaxTroubles]
	require.Equal(b, does, list[0].Doing)
	require.Zero(b, list[1].Busy)
	b.renewed(first)
	require.Zero(b, views()[0].Busy, "it has gone on")
	require.Empty(b, views()[0].Troubles)
	require.Positive(b, list[0].Since)
	require.GreaterOrEqual(b, list[0].Renewed, list[0].Since)
	third := b.open(store.Process{Name: "third", Engine: true, Lease: hour})
	require.Equal(b, []int{2, 2}, []int{engines(second), engines(third)})
	require.NoError(b, first.End(b.ctx()))
	require.Equal(b, []int{1, 2}, []int{engines(third), len(views())})
})
