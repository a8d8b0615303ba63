package journaltest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var signals = cases{
	"a signal wakes its wait, with all that publishing needs":   signalWakes,
	"a wait keeps what the engine writes of it, field by field": signalFields,
	"the oldest wait takes it, then by GUID (1.11)":             signalOldest,
	"a wait is taken back by test-and-set (C3)":                 signalCancel,
	"a wait that a signal reached meanwhile is not taken back":  signalCancelCount,
	"a quarantined job takes no signal from another (C16)":      signalQuarantined,
}

func signalWakes(b *bench) {
	id := b.jobs(1)[0]
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "paid", Key: "k"}))
	seq := b.view(id).Head.Seq
	s := b.signal("paid", "k", "first")
	told := b.tell(s)
	v, row := b.view(id), b.row(id, journal.MessageWakeUp, "work")
	require.Equal(b, store.Signalled{State: store.SignalConsumed, Reached: 1, Out: []store.Outgoing{
		{Row: row, JobKey: v.Key, Generation: 1, Flow: v.Flow, Trace: v.Trace},
	}}, told)
	require.Empty(b, v.Waits)
	require.Equal(b, []any{guid(1), collation.DAD(",0,0"), seq}, []any{row.GUID, row.DAD, row.Origin})
	require.Equal(b, s.GUID, b.woken(&row).Signal)
	require.Equal(b, "ann", b.woken(&row).Who)
	require.Equal(b, seq, v.Head.Seq, "a delivery is no entry: the Leg2 that consumes it is")
}

func signalFields(b *bench) {
	id := b.jobs(1)[0]
	want := collation.Wait{
		GUID: guid(1), Job: id, Activity: "work", DAD: ",0,0", Topic: "a.b", Key: "clé 'x' \n", Repeat: true,
		MaxAge: 7, Count: 3, Since: 5,
	}
	b.altered(id, waits(want))
	want.Origin = b.view(id).Head.Seq
	require.Equal(b, []collation.Wait{want}, b.view(id).Waits)
	require.Equal(b, &want, b.more(id, collation.Need{Waits: []journal.GUID{want.GUID}}).Waits[want.GUID])
}

// signalOldest registers waits in another order than by age.
func signalOldest(b *bench) {
	ids := b.jobs(5)
	for _, w := range []struct {
		job, guid int
		since     collation.Micros
	}{
		{0, 30, 300}, {1, 9, 100}, {2, 8, 200}, {3, 7, 200}, {0, 5, 200}, {4, 4, 200}, {1, 3, 200}, {0, 6, 400}, {4, 1, 500}, {1, 40, 50},
	} {
		b.altered(ids[w.job], waits(collation.Wait{GUID: guid(w.guid), Topic: "t", Key: "k", Since: w.since}))
	}
	for i, want := range []int{40, 9, 3, 4, 5, 7, 8, 30, 6, 1} {
		told := b.tell(b.signal("t", "k", fmt.Sprint(i)))
		require.Len(b, told.Out, 1)
		require.Equal(b, guid(want), told.Out[0].Row.GUID, "signal %d", i)
	}
	require.Equal(b, store.SignalKept, b.tell(b.signal("t", "k", "more")).State)
}

func signalCancel(b *bench) {
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
}

// signalCancelCount cancels a repeating wait after a signal reached it that the decision had not
// read: the cancel must lose, or the wake-up would be overlooked.
func signalCancelCount(b *bench) {
	id := b.jobs(1)[0]
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k", Repeat: true}))
	read := b.view(id).Waits[0]
	s := b.signal("t", "k", "x")
	s.Code = collation.CodePass
	b.tell(s)
	before := b.view(id)
	require.ErrorIs(b, b.alter(id, cancelsWait(guid(1), read.Count)), store.ErrLost)
	again := &collation.Plan{
		Taken:   []collation.Taken{{Job: id, GUID: guid(1), Seen: read.Count, Count: read.Count + 1}},
		Signals: []collation.SignalWrite{{GUID: guid(9), State: store.SignalConsumed, New: true}},
	}
	require.ErrorIs(b, b.commit(store.Chained{Plan: again}), store.ErrLost, "nor does another signal count from there")
	require.Equal(b, before, b.view(id))
	b.altered(id, cancelsWait(guid(1), 1))
	require.Empty(b, b.view(id).Waits)
}

// signalQuarantined has an older wait of a quarantined job and a wait of an open one. Nothing is
// written for the quarantined job any more, so a signal that its wait took would be lost.
func signalQuarantined(b *bench) {
	ids := b.jobs(2)
	b.altered(ids[0], waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k", Since: 1}))
	b.quarantine(ids[0])
	require.Equal(b, store.SignalKept, b.tell(b.signal("t", "k", "early")).State)
	b.altered(ids[1], waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "k", Since: 2}))
	told := b.tell(b.signal("t", "k", "late"))
	require.NotEmpty(b, told.Out)
	require.Equal(b, ids[1], told.Out[0].Row.Job)
	require.Len(b, b.view(ids[0]).Waits, 1)
}
