package journaltest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var mailboxes = map[string]func(*bench){
	"registering a wait makes what was kept due (J3)":               keepReleased,
	"a wait that repeats makes all due that was kept":               keepAllReleased,
	"who repeats a signal hears what became of the first":           keepFate,
	"one of many at once with the same GUID is taken (C7)":          keepRace,
	"kept signals expire, the oldest first, within the limit (T11)": keepExpire,
	"a signal on its way does not expire":                           keepOnItsWay,
	"a signal past its time is not made due":                        keepTooLate,
	"records of signals go when they are old (T11)":                 keepPrune,
	"a signal and a wait at once do not miss each other (J3, P13)":  keepMeet,
	"a signal and a timer at once: one of them wins (P15)":          keepTimer,
	"deliveries at once: each signal once (T8)":                     keepDeliverers,
}

// box returns the key of a signal's row.
func (b *bench) box(s *collation.Signal) collation.RowKey {
	b.Helper()
	return collation.RowKey{Job: collation.Mailbox(b.space(), s.Topic, s.Key), GUID: s.GUID}
}

func keepAllReleased(b *bench) {
	id := b.jobs(1)[0]
	for i := range 3 {
		require.Equal(b, store.SignalKept, b.tell(b.signal("t", "k", fmt.Sprint(i))).State)
	}
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k", Repeat: true}))
	due := 0
	for _, d := range b.due(10) {
		if d.Kind == journal.MessageSignal {
			due++
		}
	}
	require.Equal(b, 3, due)
}

func keepReleased(b *bench) {
	id := b.jobs(1)[0]
	first, second, other := b.signal("t", "k", "1"), b.signal("t", "k", "2"), b.signal("t", "other", "3")
	for _, s := range []*collation.Signal{first, second, other} {
		require.Equal(b, store.SignalKept, b.tell(s).State)
	}
	before := b.stored(id, b.box(second))
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	var due []collation.RowKey
	for _, d := range b.due(10) {
		if d.Kind == journal.MessageSignal {
			due = append(due, collation.RowKey{Job: d.Job, GUID: d.GUID})
		}
	}
	require.Equal(b, []collation.RowKey{b.box(first)}, due, "as many as it takes, the oldest")
	require.Equal(b, collation.HeldKept, b.stored(id, b.box(other)).Held)
	require.Len(b, b.view(id).Waits, 1, "the plan need not know what was kept")
	out := b.deliver(b.box(first), b.box(second))
	require.Len(b, out, 1)
	require.Equal(b, first.GUID, b.woken(&out[0].Row).Signal)
	require.Equal(b, before, b.stored(id, b.box(second)), "kept again, until the same time")
}

func keepFate(b *bench) {
	id := b.jobs(1)[0]
	s := b.signal("t", "k", "x")
	b.tell(s)
	require.Equal(b, store.Signalled{State: store.SignalKept, Duplicate: true}, b.tell(s))
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	require.Equal(b, store.Signalled{State: store.SignalKept, Duplicate: true}, b.tell(s), "it is on its way")
	require.Len(b, b.deliver(b.box(s)), 1)
	require.Equal(b, store.Signalled{State: store.SignalConsumed, Duplicate: true}, b.tell(s))
	require.Nil(b, b.stored(id, b.box(s)))
}

func keepRace(b *bench) {
	id := b.jobs(1)[0]
	for round := range 5 {
		key := fmt.Sprint(round)
		if round%2 == 0 {
			b.altered(id, waits(collation.Wait{GUID: guid(round), Topic: "t", Key: key}))
		}
		var mu sync.Mutex
		fresh, reached := 0, 0
		together(8, func(int) {
			got, err := b.s.Signal(b.ctx(), b.signal("t", key, "x"), b.mode)
			b.check(err)
			mu.Lock()
			defer mu.Unlock()
			if !got.Duplicate {
				fresh++
			}
			reached += got.Reached
		})
		require.Equal(b, 1, fresh)
		require.Equal(b, 1-round%2, reached)
	}
}

// keepExpire keeps signals for a short and for a long time.
func keepExpire(b *bench) {
	id := b.jobs(1)[0]
	var list []*collation.Signal
	until := map[journal.GUID]collation.Micros{}
	for i := range 5 {
		s := b.signal("t", fmt.Sprint(i), "x")
		s.Keep = micros(b.span()) - collation.Micros(5000*i)
		b.tell(s)
		list = append(list, s)
		until[s.GUID] = b.stored(id, b.box(s)).WithinAt
	}
	stays := b.signal("t", "stays", "x")
	b.tell(stays)
	slices.SortFunc(list, func(x, y *collation.Signal) int { return cmp.Compare(until[x.GUID], until[y.GUID]) })
	b.eventually(func() bool { return b.now() > until[list[4].GUID] })
	for gone := 0; gone < 5; {
		n := got(b.s.ExpireSignals(b.ctx(), 2))(b)
		require.Equal(b, min(2, 5-gone), n)
		gone += n
		for i, s := range list { // two with the same time come in any order
			same := 0 < gone && gone < 5 && until[list[gone-1].GUID] == until[list[gone].GUID] && until[s.GUID] == until[list[gone].GUID]
			require.True(b, same || i < gone == (b.stored(id, b.box(s)) == nil), "%d of %d", i, gone)
		}
	}
	for _, s := range list {
		require.Equal(b, store.Signalled{State: store.SignalMissed, Duplicate: true}, b.tell(s))
	}
	n := got(b.s.ExpireSignals(b.ctx(), 10))(b)
	require.Zero(b, n, "before its time")
	require.NotNil(b, b.stored(id, b.box(stays)))
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "1"}))
	require.Len(b, b.view(id).Waits, 1, "what has expired wakes nobody")
}

// now is the store's clock.
func (b *bench) now() collation.Micros {
	b.Helper()
	l := b.look()
	return l.Now
}

// past inserts the row of an expired signal, changed by spoil.
func (b *bench) past(id journal.JobID, s *collation.Signal, spoil func(*collation.Row)) collation.RowKey {
	b.Helper()
	var k collation.RowKey
	b.altered(id, func(p *collation.Plan, st *collation.State) {
		s.Sent, s.Keep = st.Now-10, 1
		row, err := s.Row(b.space())
		require.NoError(b, err)
		row = s.Kept(row)
		spoil(&row)
		k = keyOf(&row)
		inserts(row)(p, st)
	})
	return k
}

// keepOnItsWay: a wait made the signal due before it expired.
func keepOnItsWay(b *bench) {
	id := b.jobs(1)[0]
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	k := b.past(id, b.signal("t", "k", "x"), func(r *collation.Row) { r.Held, r.NextAt = "", r.WithinAt })
	n := got(b.s.ExpireSignals(b.ctx(), 10))(b)
	require.Zero(b, n)
	require.Len(b, b.deliver(k), 1)
}

// keepTooLate: the signal has expired, but is not removed yet.
func keepTooLate(b *bench) {
	id := b.jobs(1)[0]
	k := b.past(id, b.signal("t", "k", "x"), func(*collation.Row) {})
	row := b.stored(id, k)
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	require.Equal(b, row, b.stored(id, k))
	n := got(b.s.ExpireSignals(b.ctx(), 10))(b)
	require.Equal(b, 1, n)
}

func keepPrune(b *bench) {
	s := b.signal("t", "k", "x")
	s.All = true
	b.tell(s)
	n := got(b.s.Prune(b.ctx(), 10))(b)
	require.Zero(b, n)
	require.True(b, b.tell(s).Duplicate)
	clock, ok := b.s.Store.(Clock)
	if !ok {
		return // the test cannot wait for SignalAge
	}
	clock.Advance(store.SignalAge + time.Second)
	n = got(b.s.Prune(b.ctx(), 10))(b)
	require.Equal(b, 2, n, "the marker of its commit, too")
	require.False(b, b.tell(s).Duplicate)
}

// keepMeet registers a wait and sends its signal at the same moment. Whichever comes first, the
// signal must get to the wait.
func keepMeet(b *bench) {
	id := b.jobs(1)[0]
	for round := range 20 {
		s := b.signal("t", fmt.Sprint(round), "x")
		var got store.Signalled
		together(2, func(i int) {
			var err error
			if i == 0 {
				err = b.alter(id, waits(collation.Wait{GUID: guid(round), Topic: s.Topic, Key: s.Key}))
			} else {
				got, err = b.s.Signal(b.ctx(), s, b.mode)
			}
			b.check(err)
		})
		if got.State == store.SignalKept {
			row := b.stored(id, b.box(s))
			require.Empty(b, row.Held, "the wait made it due")
			require.NotEqual(b, collation.Never, row.NextAt)
			require.Len(b, b.deliver(b.box(s)), 1)
		}
		require.Empty(b, b.view(id).Waits)
		require.NotNil(b, b.stored(id, collation.RowKey{Job: id, GUID: guid(round)}), "the wake-up")
	}
}

// keepTimer lets the Leg2 of a timer cancel a wait while a signal closes it.
func keepTimer(b *bench) {
	id := b.jobs(1)[0]
	for round := range 20 {
		w := collation.Wait{GUID: guid(round), Topic: "t", Key: fmt.Sprint(round)}
		b.altered(id, waits(w))
		s := b.signal(w.Topic, w.Key, "x")
		var got store.Signalled
		var took error
		together(2, func(i int) {
			if i == 0 {
				took = b.alter(id, cancelsWait(w.GUID, 0))
				return
			}
			var err error
			if got, err = b.s.Signal(b.ctx(), s, b.mode); err != nil {
				b.Errorf("signal: %v", err)
			}
		})
		require.Empty(b, b.view(id).Waits)
		if got.State == store.SignalKept {
			require.NoError(b, took)
			continue
		}
		require.ErrorIs(b, took, store.ErrLost)
		require.Equal(b, w.GUID, got.Out[0].Row.GUID)
	}
}

func keepDeliverers(b *bench) {
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
}
