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

var mailboxes = cases{
	"registering a wait makes what was kept due, and its fate is known (J3)": keepReleased,
	"one of many at once with the same GUID is taken (C7)":                   keepRace,
	"kept signals expire, the oldest first, within the limit (T11)":          keepExpire,
	"a signal past its time is not made due, one on its way is":              keepTooLate,
	"records that guard against repetition go when they are old":             keepPrune,
	"deliveries at once: each signal once (T8)":                              keepDeliverers,
}

// box returns the key of a signal's row.
func (b *bench) box(s *collation.Signal) collation.RowKey {
	b.Helper()
	return collation.RowKey{Job: collation.Mailbox(b.space(), s.Topic, s.Key), GUID: s.GUID}
}

func keepReleased(b *bench) {
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
}

func keepRace(b *bench) {
	id := b.jobs(1)[0]
	for round := range 4 {
		key := fmt.Sprint(round)
		if round%2 == 0 {
			b.altered(id, waits(collation.Wait{GUID: guid(round), Topic: "t", Key: key}))
		}
		var mu sync.Mutex
		fresh, reached := 0, 0
		together(8, func(int) {
			told, err := b.s.Signal(b.ctx(), b.signal("t", key, "x"), b.mode)
			b.check(err)
			mu.Lock()
			defer mu.Unlock()
			if reached += told.Reached; !told.Duplicate {
				fresh++
			}
		})
		require.Equal(b, []int{1, 1 - round%2}, []int{fresh, reached})
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
	require.Equal(b, store.Signalled{State: store.SignalMissed, Duplicate: true}, b.tell(list[0]))
	require.Zero(b, got(b.s.ExpireSignals(b.ctx(), 10))(b), "before its time")
	require.NotNil(b, b.stored(id, b.box(stays)))
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

// keepTooLate: of two signals that have expired a wait has made one due before.
func keepTooLate(b *bench) {
	id := b.jobs(1)[0]
	late := b.past(id, b.signal("t", "late", "x"), func(*collation.Row) {})
	row := b.stored(id, late)
	for i, key := range []string{"late", "way"} {
		b.altered(id, waits(collation.Wait{GUID: guid(i), Topic: "t", Key: key}))
	}
	require.Equal(b, row, b.stored(id, late))
	onItsWay := b.past(id, b.signal("t", "way", "x"), func(r *collation.Row) { r.Held, r.NextAt = "", r.WithinAt })
	require.Equal(b, []collation.RowKey{late}, got(b.s.LateSignals(b.ctx(), 10))(b))
	require.Equal(b, 1, got(b.s.ExpireSignals(b.ctx(), 10))(b))
	require.Len(b, b.deliver(onItsWay), 1)
}

// keepPrune: records of signals and markers of commits go when they are old.
func keepPrune(b *bench) {
	missed, kept := b.signal("t", "k", "x"), b.signal("t", "kept", "x")
	missed.All = true
	kept.Keep = 2 * micros(store.SignalAge)
	b.tell(missed)
	b.tell(kept)
	require.Zero(b, got(b.s.Prune(b.ctx(), 10))(b))
	require.True(b, b.tell(missed).Duplicate)
	clock, ok := b.s.Store.(Clock)
	if !ok {
		return // the test cannot wait for MarkerAge
	}
	clock.Advance(store.MarkerAge + time.Second)
	require.Equal(b, 2, got(b.s.Prune(b.ctx(), 10))(b), "the markers of their commits")
	clock.Advance(store.SignalAge)
	require.Equal(b, 1, got(b.s.Prune(b.ctx(), 10))(b))
	require.False(b, b.tell(missed).Duplicate)
	require.True(b, b.tell(kept).Duplicate, "the record stays as long as its row")
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
