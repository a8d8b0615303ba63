package journaltest

import (
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

func signalCancel(b *bench) {
	ids := b.jobs(2)
	b.altered(ids[0], waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	before := b.view(ids[0])
	require.ErrorIs(b, b.alter(ids[0], all(cancelsWait(guid(1), 0), cancelsWait(guid(2), 0))), store.ErrLost)
	require.ErrorIs(b, b.alter(ids[1], cancelsWait(guid(1), 0)), store.ErrLost, "the wait of another job")
	require.Equal(b, before, b.view(ids[0]), "nothing is written")
	require.ErrorIs(b, b.alter(ids[0], cancelsWait(guid(1), 1)), store.ErrLost, "as it was not read")
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
	read := b.more(id, collation.Need{AllRows: true}).Waits[guid(1)]
	s := b.signal("t", "k", "x")
	s.Code = collation.CodePass
	b.tell(s)
	before := b.view(id)
	require.ErrorIs(b, b.alter(id, cancelsWait(guid(1), read.Count)), store.ErrLost)
	again := &collation.Plan{
		Taken:   []collation.Taken{{Job: id, GUID: guid(1), Seen: read.Count, Count: read.Count + 1}},
		Signals: []collation.SignalWrite{{GUID: guid(9), State: store.SignalConsumed, New: true}},
	}
	require.ErrorIs(b, b.c.Commit(b.ctx(), []store.Chained{{Plan: again}}), store.ErrLost, "nor does another signal count from there")
	require.Equal(b, before, b.view(id))
	b.altered(id, cancelsWait(guid(1), 1))
	require.Empty(b, b.view(id).Waits)
}

func signalTwice(b *bench) {
	id := b.jobs(1)[0]
	w := collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}
	b.altered(id, waits(w))
	before := b.view(id)
	require.ErrorIs(b, b.alter(id, waits(w)), store.ErrLost)
	require.Equal(b, before, b.view(id))
}

// signalBatchCancel registers two waits in one transaction, and cancels one of them in a second
// plan of it, while a signal is kept for it.
func signalBatchCancel(b *bench) {
	id := b.jobs(1)[0]
	kept := b.signal("t", "k", "x")
	require.Equal(b, store.SignalKept, b.tell(kept).State)
	l := b.locked(b.c, store.Want{Job: id})
	st := l.States[id]
	var plans []store.Chained
	for _, add := range []change{
		all(waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}), waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "l"})),
		cancelsWait(guid(1), 0),
	} {
		p := handmade(st, &collation.Message{Job: id})
		add(p, st)
		plans = append(plans, store.Chain(&st.Job, p))
		st.Apply(p)
	}
	require.NoError(b, b.c.Commit(b.ctx(), plans))
	require.Len(b, b.view(id).Waits, 1)
	require.Equal(b, guid(2), b.view(id).Waits[0].GUID)
	k := collation.RowKey{Job: collation.Mailbox(b.space(), "t", "k"), GUID: kept.GUID}
	require.Empty(b, b.deliver(k), "nobody waits any more")
	require.Equal(b, collation.HeldKept, b.stored(id, k).Held)
}

func signalAllRows(b *bench) {
	ids := b.jobs(2)
	b.altered(ids[0], all(
		waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}), waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "k"}),
	))
	b.altered(ids[1], waits(collation.Wait{GUID: guid(3), Topic: "t", Key: "k"}))
	st := b.more(ids[0], collation.Need{AllRows: true})
	require.True(b, st.AllRows)
	want := map[journal.GUID]*collation.Wait{}
	for _, w := range b.view(ids[0]).Waits {
		want[w.GUID] = &w
	}
	require.Len(b, want, 2)
	require.Equal(b, want, st.Waits)
}

func signalLoad(b *bench) {
	ids := b.jobs(2)
	b.altered(ids[0], waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	b.altered(ids[1], waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "k"}))
	st := b.more(ids[0], collation.Need{Waits: []journal.GUID{guid(1), guid(2), guid(3)}})
	require.Equal(b, map[journal.GUID]*collation.Wait{
		guid(1): &b.view(ids[0]).Waits[0], guid(2): nil, guid(3): nil,
	}, st.Waits)
}

func signalDue(b *bench) {
	id := b.jobs(1)[0]
	k := b.sent(id, b.signal("t", "k", "x"))
	var of []store.DueRow
	for _, d := range b.due(10) {
		if d.Kind == journal.MessageSignal {
			of = append(of, d)
		}
	}
	require.Len(b, of, 1)
	require.Equal(b, k, collation.RowKey{Job: of[0].Job, GUID: of[0].GUID})
	require.Equal(b, "t", of[0].Topic)
	out := got(b.s.Claim(b.ctx(), claims(of, true)))(b)
	require.Equal(b, []store.Outgoing{{Row: *b.stored(id, k)}}, out, "it belongs to no job")
	require.Equal(b, 1, out[0].Row.Publication)
}

// signalRow closes a job between the delivery and its message.
func signalRow(b *bench) {
	id := b.requested(one, "k")
	b.altered(id, waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k"}))
	b.tell(b.signal("t", "k", "x"))
	st := b.more(id, collation.Need{AllRows: true})
	require.Len(b, st.Rows, 2)
	require.Empty(b, st.Waits)
	require.Equal(b, journal.MessageWakeUp, st.Rows[guid(1)].Kind)
	b.answer(id, "work", failure(journal.ResponseTerminal, "no"))
	v := b.view(id)
	require.Equal(b, journal.JobFailed, v.State)
	require.Empty(b, v.Rows, "the close takes the wake-up back")
}
