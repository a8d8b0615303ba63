package postgres

import (
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

var _ = test("Signals", "a wait keeps what the engine writes of it, field by field", func(b *bench) {
	id := b.jobs(1)[0]
	want := collation.Wait{
		GUID: guid(1), Job: id, Activity: "work", DAD: ",0,0", Topic: "a.b", Key: "clé 'x' \n", Repeat: true,
		MaxAge: 7, Count: 3, Since: 5,
	}
	b.altered(id, waits(want))
	want.Origin = b.view(id).Head.Seq
	require.Equal(b, []collation.Wait{want}, b.view(id).Waits)
	require.Equal(b, &want, b.more(id, collation.Need{Waits: []journal.GUID{want.GUID}}).Waits[want.GUID])
})

// It registers waits in another order than by age.
var _ = test("Signals", "the oldest wait takes it, then by GUID (1.11)", func(b *bench) {
	ids := b.jobs(5)
	for _, w := range []struct {
		job, guid int
		since     collation.Micros
	}{
		{0, 30, 300},
		{1, 9, 100},
		{2, 8, 200},
		{3, 7, 200},
		{0, 5, 200},
		{4, 4, 200},
		{1, 3, 200},
		{0, 6, 400},
		{4, 1, 500},
		{1, 40, 50},
	} {
		b.altered(ids[w.job], waits(collation.Wait{GUID: guid(w.guid), Topic: "t", Key: "k", Since: w.since}))
	}
	for i, want := range []int{40, 9, 3, 4, 5, 7, 8, 30, 6, 1} {
		told := b.tell(b.signal("t", "k", fmt.Sprint(i)))
		require.Len(b, told.Out, 1)
		require.Equal(b, guid(want), told.Out[0].Row.GUID, "signal %d", i)
	}
	require.Equal(b, store.SignalKept, b.tell(b.signal("t", "k", "more")).State)
})

var _ = test("Signals", "a wait is taken back by test-and-set (C3)", func(b *bench) {
	ids := b.jobs(2)
	w := collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}
	b.altered(ids[0], waits(w))
	before := b.view(ids[0])
	for name, add := range map[string]change{
		"registered twice":    waits(w),
		"with one that is no": all(cancelsWait(guid(1), 0), cancelsWait(guid(2), 0)),
		"as it was not read":  cancelsWait(guid(1), 1),
	} {
		require.ErrorIs(b, b.alter(ids[0], add), store.ErrLost, name)
		require.Equal(b, before, b.view(ids[0]), name)
	}
	require.ErrorIs(b, b.alter(ids[1], cancelsWait(guid(1), 0)), store.ErrLost, "the wait of another job")
	b.altered(ids[0], cancelsWait(guid(1), 0))
	require.Empty(b, b.view(ids[0]).Waits)
	require.ErrorIs(b, b.alter(ids[0], cancelsWait(guid(1), 0)), store.ErrLost)
	require.Equal(b, store.SignalKept, b.tell(b.signal("t", "k", "x")).State)
})

// It cancels a repeating wait after a signal reached it that the decision had not
// read: the cancel must lose, or the wake-up would be overlooked.
var _ = test("Signals", "a wait that a signal reached meanwhile is not taken back", func(b *bench) {
	id := b.jobs(1)[0]
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k", Repeat: true}))
	read := b.view(id).Waits[0]
	s := b.signal("t", "k", "x")
	s.Code = collation.CodePass
	b.tell(s)
	before := b.view(id)
	require.ErrorIs(b, b.alter(id, cancelsWait(guid(1), read.Count)), store.ErrLost)
	again := &collation.Plan{
		MailboxWrites: collation.MailboxWrites{
			Taken:   []collation.Taken{{Job: id, GUID: guid(1), Seen: read.Count, Count: read.Count + 1}},
			Signals: []collation.SignalWrite{{GUID: guid(9), State: store.SignalConsumed, New: true}},
		},
	}
	require.ErrorIs(b, b.commit(store.Chained{Plan: again}), store.ErrLost, "nor does another signal count from there")
	require.Equal(b, before, b.view(id))
	b.altered(id, cancelsWait(guid(1), 1))
	require.Empty(b, b.view(id).Waits)
})

// It has an older wait of a quarantined job and a wait of an open one. Nothing is
// written for the quarantined job any more, so a signal that its wait took would be lost.
var _ = test("Signals", "a quarantined job takes no signal from another (C16)", func(b *bench) {
	ids := b.jobs(2)
	b.altered(ids[0], waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k", Since: 1}))
	b.quarantine(ids[0])
	require.Equal(b, store.SignalKept, b.tell(b.signal("t", "k", "early")).State)
	b.altered(ids[1], waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "k", Since: 2}))
	told := b.tell(b.signal("t", "k", "late"))
	require.NotEmpty(b, told.Out)
	require.Equal(b, ids[1], told.Out[0].Row.Job)
	require.Len(b, b.view(ids[0]).Waits, 1)
})

// box returns the key of a signal's row.
func (b *bench) box(s *collation.Signal) collation.RowKey {
	b.Helper()
	return collation.RowKey{Job: collation.Mailbox(b.space(), s.Topic, s.Key), GUID: s.GUID}
}

var _ = test("Mailboxes", "registering a wait makes what was kept due, and its fate is known (J3)", func(b *bench) {
	id := b.jobs(1)[0]
	var kept []*collation.Signal
	for _, key := range []string{"k", "k", "k", "other"} {
		s := b.signal("t", key, fmt.Sprint(len(kept)))
		require.Equal(b, store.SignalKept, b.tell(s).State)
		kept = append(kept, s)
	}
	again := func(state store.SignalState) {
		b.Helper()
		require.Equal(b, store.Signalled{State: state, Duplicate: true}, b.tell(kept[0]))
	}
	again(store.SignalKept)
	before := b.stored(id, b.box(kept[1]))
	due := func() (due []journal.GUID) {
		for _, d := range b.due(10) {
			if d.Kind == journal.MessageSignal {
				due = append(due, d.GUID)
			}
		}
		return due
	}
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	require.Equal(b, []journal.GUID{kept[0].GUID}, due(), "as many as it takes, the oldest")
	require.Len(b, b.view(id).Waits, 1, "the plan need not know what was kept")
	again(store.SignalKept) // it is on its way
	out := b.deliver(b.box(kept[0]), b.box(kept[1]))
	require.Len(b, out, 1)
	again(store.SignalConsumed)
	require.Nil(b, b.stored(id, b.box(kept[0])))
	require.Equal(b, kept[0].GUID, b.woken(&out[0].Row).Signal)
	require.Equal(b, before, b.stored(id, b.box(kept[1])), "kept again, until the same time")
	b.altered(id, waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "k", Repeat: true}))
	require.Len(b, due(), 2, "one that repeats takes all")
	require.Equal(b, collation.HeldKept, b.stored(id, b.box(kept[3])).Held)
})

// It has one kept signal for a wait, and one for a wait that the same commit cancels.
var _ = test("Mailboxes", "who registers a wait publishes what it makes due (J3, T2)", func(b *bench) {
	id := b.jobs(1)[0]
	told, cancelled := b.signal("t", "told", "x"), b.signal("t", "cancelled", "x")
	b.tell(told)
	b.tell(cancelled)
	before := b.stored(id, b.box(told))
	sends := func(p *collation.Plan, _ *collation.State) {
		p.Sending = collation.Sending{Resend: micros(hour), Session: 7}
	}
	wait := func(n int, key string) change { return waits(collation.Wait{GUID: guid(n), Topic: "t", Key: key}) }
	require.NoError(b, b.series(id, all(wait(1, "told"), wait(2, "cancelled"), sends), cancelsWait(guid(2), 0)))
	row := b.stored(id, b.box(told))
	sent := b.c.Released()
	require.Equal(b, []store.Outgoing{store.OutgoingSignal(row.Job, row.GUID, before.Publication+1, row.PublishedAt)},
		sent)
	require.Equal(b, sent[0].Row.Publication, row.Publication)
	require.Greater(b, row.PublishedAt, before.PublishedAt, "the time is the store's (J5)")
	require.Equal(b, row.PublishedAt+micros(hour), row.NextAt, "the sweeper does not send it, too")
	require.EqualValues(b, 7, row.Session, "the end of that process makes it due (W8)")
	require.Empty(b, row.Held)
	require.Equal(b, collation.HeldKept, b.stored(id, b.box(cancelled)).Held)
	b.altered(id, wait(3, "cancelled"))
	require.Empty(b, b.c.Released(), "nobody is to publish this one")
	require.Len(b, b.deliver(b.box(told)), 1)
})

var _ = test("Mailboxes", "one of many at once with the same GUID is taken (C7)", func(b *bench) {
	id := b.jobs(1)[0]
	for round := range 4 {
		key := fmt.Sprint(round)
		if round%2 == 0 {
			b.altered(id, waits(collation.Wait{GUID: guid(round), Topic: "t", Key: key}))
		}
		told := atOnce(8, func(int) [2]any {
			x, err := b.s.Signal(b.ctx(), b.signal("t", key, "x"), b.mode)
			b.check(err)
			return [2]any{x.Duplicate, x.Reached}
		})
		require.Equal(b, map[[2]any]int{{false, 1 - round%2}: 1, {true, 0}: 7}, told)
	}
})

// past inserts the row of an expired signal, changed by spoil.
func (b *bench) past(id journal.JobID, s *collation.Signal, spoil func(*collation.Row)) collation.RowKey {
	b.Helper()
	var k collation.RowKey
	b.altered(id, func(p *collation.Plan, st *collation.State) {
		s.Sent, s.Keep = st.Now-10, 1
		row := must(s.Row(b.space()))(b)
		row = s.Kept(row)
		spoil(&row)
		k = keyOf(&row)
		inserts(row)(p, st)
	})
	return k
}

// Four signals whose time has passed, the last first, and one whose time will pass.
var _ = test("Mailboxes", "kept signals expire, the oldest first, within the limit (T11)", func(b *bench) {
	id := b.jobs(1)[0]
	told, stays := b.signal("t", "told", "x"), b.signal("t", "stays", "x")
	told.Keep = micros(lasting)
	b.tell(told)
	b.tell(stays)
	order := []collation.RowKey{b.box(told)}
	for i := range 4 {
		k := b.past(id, b.signal("t", fmt.Sprint(i), "x"), func(r *collation.Row) {
			r.WithinAt -= collation.Micros(i) * micros(hour)
		})
		order = append([]collation.RowKey{k}, order...)
	}
	until := b.stored(id, b.box(told)).WithinAt
	b.eventually(func() bool { return b.now() > until })
	for gone := 0; gone < 5; {
		n := must(b.s.ExpireSignals(b.ctx(), 2))(b)
		require.Equal(b, min(2, 5-gone), n)
		gone += n
		for i, k := range order {
			require.Equal(b, i < gone, b.stored(id, k) == nil, "%d of %d", i, gone)
		}
	}
	require.Equal(b, store.Signalled{State: store.SignalMissed, Duplicate: true}, b.tell(told))
	require.Zero(b, must(b.s.ExpireSignals(b.ctx(), 10))(b), "before its time")
	require.NotNil(b, b.stored(id, b.box(stays)))
})

// Of two signals that have expired a wait has made one due before.
var _ = test("Mailboxes", "a signal past its time is not made due, one on its way is", func(b *bench) {
	id := b.jobs(1)[0]
	late := b.past(id, b.signal("t", "late", "x"), func(*collation.Row) {})
	row := b.stored(id, late)
	for i, key := range []string{"late", "way"} {
		b.altered(id, waits(collation.Wait{GUID: guid(i), Topic: "t", Key: key}))
	}
	require.Equal(b, row, b.stored(id, late))
	onItsWay := b.past(id, b.signal("t", "way", "x"), func(r *collation.Row) { r.Held, r.NextAt = "", r.WithinAt })
	require.Equal(b, []collation.RowKey{late}, must(b.s.Late(b.ctx(), journal.MessageSignal, 10))(b))
	require.Equal(b, 1, must(b.s.ExpireSignals(b.ctx(), 10))(b))
	require.Len(b, b.deliver(onItsWay), 1)
})

// Records of signals go when they are old. How many markers of commits go is the store's own affair.
var _ = test("Mailboxes", "records that guard against repetition go when they are old", func(b *bench) {
	missed, kept := b.signal("t", "k", "x"), b.signal("t", "kept", "x")
	missed.All = true
	kept.Keep = 2 * micros(store.SignalAge)
	b.tell(missed)
	b.tell(kept)
	require.Zero(b, must(b.s.Prune(b.ctx(), 10))(b))
	require.True(b, b.tell(missed).Duplicate)
	b.clock.Advance(store.SignalAge + time.Second)
	require.Positive(b, must(b.s.Prune(b.ctx(), 10))(b))
	require.False(b, b.tell(missed).Duplicate)
	require.True(b, b.tell(kept).Duplicate, "the record stays as long as its row")
})

var _ = test("Mailboxes", "deliveries at once: each signal once (T8)", func(b *bench) {
	ids := b.jobs(4)
	var keys []collation.RowKey
	for i := range 40 {
		id := ids[i%len(ids)]
		b.altered(id, waits(collation.Wait{GUID: guid(i), Topic: "t", Key: fmt.Sprint(i % 10)}))
		keys = append(keys, b.sent(id, b.signal("t", fmt.Sprint(i%10), fmt.Sprint(i))))
	}
	var mu sync.Mutex
	woken := map[journal.GUID]int{}
	together(4, func(n int) {
		mine := make([]collation.RowKey, len(keys))
		for i := range keys { // in different orders, so that they could deadlock
			mine[i] = keys[(i*[]int{1, 3, 7, 9}[n]+n)%len(keys)]
		}
		out, err := b.s.Deliver(b.ctx(), mine, b.mode)
		b.check(err)
		mu.Lock()
		defer mu.Unlock()
		for _, o := range out {
			woken[o.Row.GUID]++
		}
	})
	require.Len(b, woken, len(keys))
	for g, n := range woken {
		require.Equal(b, 1, n, "wake-up %s", g)
	}
})

// interruptOf returns the row of an interrupt of a job.
func (b *bench) interruptOf(target journal.JobID, caller string) collation.Row {
	b.Helper()
	o := collation.InterruptOrder{Code: collation.CodeInterrupted, Reason: "enough", Throw: true, From: caller}
	return must(o.Row(collation.AskedInterruptGUID(caller, target), target, 1))(b)
}

// interrupt inserts the row, and says whether the interrupt was not known.
func (b *bench) interrupt(row collation.Row) bool {
	fresh, err := b.s.Interrupt(b.ctx(), row, b.mode)
	b.check(err)
	return fresh
}

var _ = test("Interrupts", "one of many at once with the same GUID is fresh (C7)", func(b *bench) {
	id := b.jobs(1)[0]
	row := b.interruptOf(id, "x")
	require.Equal(b, map[bool]int{true: 1, false: 7}, atOnce(8, func(int) bool { return b.interrupt(row) }))
	require.Len(b, b.view(id).Rows, 2)
	stored := b.row(id, journal.MessageInterrupt, "")
	require.Greater(b, stored.PublishedAt, collation.Micros(1), "the time is the store's (J5)")
	require.Equal(b, stored.PublishedAt+b.mode.Resend, stored.NextAt)
})
