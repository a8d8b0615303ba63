package journaltest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var signals = map[string]func(*bench){
	"a signal wakes its wait, with all that publishing needs":    signalWakes,
	"a wait keeps what the engine writes of it, field by field":  signalFields,
	"topic and key are one address (1.11)":                       signalAddress,
	"the oldest wait takes it, then by GUID (1.11)":              signalOldest,
	"a wait passes over what was kept too long for it":           signalMaxAge,
	"a repeating wait numbers its signals and stays (C12)":       signalRepeat,
	"signals of one batch are numbered on":                       signalRepeatBatch,
	"a signal may bring an error (1.11)":                         signalCode,
	"mode all wakes every wait that is open":                     signalAll,
	"mode all reaches at most MaxReach waits (T11)":              signalReach,
	"many signals to many waits in one call (J6)":                signalBatch,
	"a row that is gone or held says that it was handled":        signalHandled,
	"a wait is taken back by test-and-set (C3)":                  signalUnwait,
	"a wait that a signal reached meanwhile is not taken back":   signalUnwaitCount,
	"a wait is registered once (C3)":                             signalTwice,
	"a wait comes and goes within one batch (J6)":                signalBatchUnwait,
	"the close of a job finds every wait (C15)":                  signalAllRows,
	"waits are loaded by their names; those of others are not":   signalLoad,
	"a signal that an activity sent is delivered from its row":   signalSent,
	"a quarantined job takes no signal from another (C16)":       signalQuarantined,
	"what was kept goes before what comes later (1.11)":          signalOrder,
	"the engine's rows of a mailbox are due like others (T1)":    signalDue,
	"a wake-up is its job's row, and licenses its message (C15)": signalLicence,
}

func signalWakes(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	w := collation.Wait{GUID: guid(1), Topic: "paid", Key: "k"}
	b.altered(c, id, waits(w))
	seq := b.view(id).Head.Seq
	s := b.signal("paid", "k", "first")
	got := b.tell(s)
	require.Equal(b, store.SignalConsumed, got.State)
	require.False(b, got.Duplicate)
	require.Equal(b, 1, got.Reached)
	require.Len(b, got.Out, 1)

	v := b.view(id)
	require.Empty(b, v.Waits)
	row := b.row(id, journal.MessageWakeUp, "work")
	require.Equal(b, store.Outgoing{Row: row, JobKey: v.Key, Generation: 1, Flow: v.Flow, Trace: v.Trace}, got.Out[0])
	require.Equal(b, w.GUID, row.GUID)
	require.Equal(b, collation.DAD(",0,0"), row.DAD)
	require.Equal(b, seq, row.Origin)
	require.Equal(b, 1, row.Publication)
	require.Equal(b, row.PublishedAt+b.mode.Resend, row.NextAt, "the caller publishes it; the sweeper looks again later")
	require.Equal(b, &journal.Response{
		Kind: journal.ResponseTerminal, Code: collation.CodeOK, By: journal.BySignal, Signal: s.GUID, Output: []byte(`"first"`),
	}, b.woken(&row))
	require.Equal(b, seq, v.Head.Seq, "a delivery is no entry: the Leg2 that consumes it is")
	b.audit(id)
}

func signalFields(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	want := collation.Wait{
		GUID: guid(1), Job: id, Activity: "work", DAD: ",0,0", Topic: "a.b", Key: "clé 'x' \n", Repeat: true,
		MaxAge: 7, Count: 3, Since: 5,
	}
	b.altered(c, id, waits(want))
	want.Origin = b.view(id).Head.Seq
	require.Equal(b, []collation.Wait{want}, b.view(id).Waits)
	require.Equal(b, map[journal.GUID]*collation.Wait{want.GUID: &want}, b.more(c, id, collation.Need{Waits: []journal.GUID{want.GUID}}).Waits)
	b.audit(id)
}

func signalAddress(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	for i, at := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"A", "bc"}, {"a", "bc "}, {"a", ""}} {
		b.altered(c, id, waits(collation.Wait{GUID: guid(i), Topic: at[0], Key: at[1]}))
	}
	for i, at := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"A", "bc"}, {"a", "bc "}, {"a", ""}} {
		got := b.tell(b.signal(at[0], at[1], "x"))
		require.Equal(b, guid(i), got.Out[0].Row.GUID)
		require.Equal(b, store.SignalKept, b.tell(b.signal(at[0], at[1], "y")).State)
	}
	b.audit(id)
}

// signalOldest registers waits in another order than that of their age.
func signalOldest(b *bench) {
	c := b.committer()
	ids := b.jobs(5)
	for _, w := range []struct {
		job, guid int
		since     collation.Micros
	}{
		{0, 30, 300}, {1, 9, 100}, {2, 8, 200}, {3, 7, 200}, {0, 5, 200}, {4, 4, 200}, {1, 3, 200}, {0, 6, 400}, {4, 1, 500}, {1, 40, 50},
	} {
		b.altered(c, ids[w.job], waits(collation.Wait{GUID: guid(w.guid), Topic: "t", Key: "k", Since: w.since}))
	}
	for i, want := range []int{40, 9, 3, 4, 5, 7, 8, 30, 6, 1} {
		got := b.tell(b.signal("t", "k", fmt.Sprint(i)))
		require.Len(b, got.Out, 1)
		require.Equal(b, guid(want), got.Out[0].Row.GUID, "signal %d", i)
	}
	require.Equal(b, store.SignalKept, b.tell(b.signal("t", "k", "more")).State)
	b.audit(ids...)
}

// signalMaxAge delivers signals that were sent long ago.
func signalMaxAge(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	var now collation.Micros
	b.altered(c, id, func(_ *collation.Plan, st *collation.State) { now = st.Now })
	old := now - micros(hour)
	b.altered(c, id, all(
		waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k", MaxAge: micros(hour) / 2, Since: now - 9}),
		waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "k", MaxAge: micros(2 * hour), Since: now - 8}),
		waits(collation.Wait{GUID: guid(3), Topic: "t", Key: "k", Since: now - 7}),
		waits(collation.Wait{GUID: guid(4), Topic: "t", Key: "k", MaxAge: 1, Since: old}),
	))
	for i, want := range []int{4, 2, 3} {
		s := b.signal("t", "k", fmt.Sprint(i))
		s.Sent = old
		out := b.deliver(b.sent(c, id, s))
		require.Len(b, out, 1)
		require.Equal(b, guid(want), out[0].Row.GUID, "%d: of those that take it, the oldest", i)
	}
	s := b.signal("t", "k", "kept")
	s.Sent = old
	k := b.sent(c, id, s)
	require.Empty(b, b.deliver(k))
	require.Equal(b, collation.HeldKept, b.stored(c, id, k).Held)
	require.Equal(b, guid(1), b.tell(b.signal("t", "k", "new")).Out[0].Row.GUID, "a new one is as it should be")
	b.audit(id)
}

func signalRepeat(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	w := collation.Wait{GUID: guid(1), Topic: "t", Key: "k", Repeat: true}
	b.altered(c, id, waits(w))
	for i := 1; i <= 4; i++ {
		s := b.signal("t", "k", fmt.Sprint(i))
		if i < 4 {
			s.Code = collation.CodePass
		}
		got := b.tell(s)
		require.Equal(b, store.SignalConsumed, got.State)
		require.Len(b, got.Out, 1)
		row := got.Out[0].Row
		require.Equal(b, collation.SignalledGUID(w.GUID, s.GUID), row.GUID)
		x := b.woken(&row)
		require.Equal(b, i, x.Number)
		require.Equal(b, collation.CodeOK, x.Code)
		if i == 4 {
			require.Equal(b, journal.ResponseTerminal, x.Kind)
			break
		}
		require.Equal(b, journal.ResponsePass, x.Kind)
		require.Len(b, b.view(id).Waits, 1)
		require.Equal(b, i, b.view(id).Waits[0].Count)
	}
	v := b.view(id)
	require.Empty(b, v.Waits, "code 200 ends it")
	require.Len(b, v.Rows, 5, "the start and four wake-ups")
	require.Equal(b, store.SignalKept, b.tell(b.signal("t", "k", "late")).State)
	b.audit(id)
}

func signalRepeatBatch(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	b.altered(c, id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k", Repeat: true, Count: 5}))
	var keys []collation.RowKey
	for i := range 4 {
		s := b.signal("t", "k", fmt.Sprint(i))
		if s.Code = collation.CodePass; i == 2 {
			s.Code = 409
		}
		keys = append(keys, b.sent(c, id, s))
	}
	out := b.deliver(keys...)
	require.Len(b, out, 3)
	for i := range out {
		require.Equal(b, 6+i, b.woken(&out[i].Row).Number)
	}
	require.Empty(b, b.view(id).Waits, "an error ends it")
	require.Equal(b, collation.HeldKept, b.stored(c, id, keys[3]).Held, "for the next wait")
	b.audit(id)
}

func signalCode(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	b.altered(c, id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	s := b.signal("t", "k", "no")
	s.Code = 422
	x := b.woken(&b.tell(s).Out[0].Row)
	require.Equal(b, 422, x.Code)
	require.Nil(b, x.Output)
	require.Equal(b, "signal", x.Error.Class)
	require.Equal(b, `"no"`, string(x.Error.Data))
	b.audit(id)
}

func signalAll(b *bench) {
	c := b.committer()
	ids := b.jobs(3)
	b.altered(c, ids[0], all(
		waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}),
		waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "other"}),
	))
	b.altered(c, ids[1], waits(collation.Wait{GUID: guid(3), Topic: "t", Key: "k", Repeat: true}))
	b.altered(c, ids[2], waits(collation.Wait{GUID: guid(4), Topic: "t", Key: "k"}))
	s := b.signal("t", "k", "first")
	s.All, s.Code = true, collation.CodePass
	got := b.tell(s)
	require.Equal(b, store.SignalConsumed, got.State)
	require.Equal(b, 3, got.Reached)
	require.Len(b, got.Out, 3)
	for i, n := range []int{1, 1, 0} {
		require.Len(b, b.view(ids[i]).Waits, n)
	}
	require.Equal(b, guid(2), b.view(ids[0]).Waits[0].GUID)
	require.Equal(b, 1, b.view(ids[1]).Waits[0].Count)

	again := b.signal("t", "k", "second")
	again.All = true
	out := b.deliver(b.sent(c, ids[0], again))
	require.Len(b, out, 1)
	require.Equal(b, 2, b.woken(&out[0].Row).Number)

	nobody := b.signal("t", "k", "third")
	nobody.All = true
	require.Equal(b, store.Signalled{State: store.SignalMissed}, b.tell(nobody), "not kept")
	require.Equal(b, store.Signalled{State: store.SignalMissed, Duplicate: true}, b.tell(nobody))
	last := b.signal("t", "k", "fourth")
	last.All = true
	k := b.sent(c, ids[0], last)
	require.Empty(b, b.deliver(k))
	require.Nil(b, b.stored(c, ids[0], k))
	b.audit(ids...)
}

func signalReach(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	b.altered(c, id, func(p *collation.Plan, st *collation.State) {
		for i := range collation.MaxReach + 1 {
			p.Waits = append(p.Waits, collation.Wait{
				GUID: guid(i), Job: id, Activity: "work", DAD: ",0,0", Topic: "t", Key: "k", Since: st.Now + collation.Micros(i),
			})
		}
	})
	s := b.signal("t", "k", "x")
	s.All = true
	require.Equal(b, collation.MaxReach, b.tell(s).Reached)
	left := b.view(id).Waits
	require.Len(b, left, 1)
	require.Equal(b, guid(collation.MaxReach), left[0].GUID, "the youngest")
}

func signalBatch(b *bench) {
	c := b.committer()
	ids := b.jobs(20)
	var keys []collation.RowKey
	for i := range 100 {
		id := ids[i%len(ids)]
		key := fmt.Sprint("key-", i)
		if i%2 == 0 {
			b.altered(c, id, waits(collation.Wait{GUID: guid(i), Topic: "t", Key: key}))
		}
		keys = append(keys, b.sent(c, id, b.signal("t", key, "x")))
	}
	out := b.deliver(keys...)
	require.Len(b, out, 50)
	for i := range out {
		b.woken(&out[i].Row)
	}
	for i, k := range keys {
		row := b.stored(c, ids[0], k)
		require.Equal(b, i%2 == 0, row == nil, "signal %d", i)
	}
	b.audit(ids...)
}

func signalHandled(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	s := b.signal("t", "k", "x")
	k := b.sent(c, id, s)
	require.Empty(b, b.deliver(k, k, collation.RowKey{Job: k.Job, GUID: guid(9)}))
	kept := b.stored(c, id, k)
	require.Equal(b, collation.HeldKept, kept.Held)
	require.Empty(b, b.deliver(k), "held: nothing to do")
	require.Equal(b, kept, b.stored(c, id, k))
	b.altered(c, id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	require.Len(b, b.deliver(k, k), 1, "named twice, delivered once")
	require.Empty(b, b.deliver(k))
	require.Nil(b, b.stored(c, id, k))

	b.altered(c, id, waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "k"}))
	stuck := b.past(c, id, b.signal("t", "k", "y"), func(r *collation.Row) { r.Held = collation.HeldStuck })
	require.Empty(b, b.deliver(stuck), "a person has it")
	require.Len(b, b.view(id).Waits, 1)
	b.audit(id)
}
