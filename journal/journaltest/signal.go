package journaltest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var signals = map[string]func(*bench){
	"a signal wakes its wait, with all that publishing needs":   signalWakes,
	"a wait keeps what the engine writes of it, field by field": signalFields,
	"the oldest wait takes it, then by GUID (1.11)":             signalOldest,
	"mode all reaches at most MaxReach waits (T11)":             signalReach,
	"many signals to many waits in one call (J6)":               signalBatch,
	"a wait is taken back by test-and-set (C3)":                 signalCancel,
	"a wait that a signal reached meanwhile is not taken back":  signalCancelCount,
	"a wait is registered once (C3)":                            signalTwice,
	"a wait comes and goes within one batch (J6)":               signalBatchCancel,
	"the close of a job finds every wait (C15)":                 signalAllRows,
	"waits are loaded by their names; those of others are not":  signalLoad,
	"a quarantined job takes no signal from another (C16)":      signalQuarantined,
	"the engine's rows of a mailbox are due like others (T1)":   signalDue,
	"a wake-up is its job's row, and its message has it (C15)":  signalRow,
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
		Kind: journal.ResponseTerminal, Code: collation.CodeOK, By: journal.BySignal, Signal: s.GUID, Who: "ann", Output: []byte(`"first"`),
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

// signalOldest registers waits in another order than by age.
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
