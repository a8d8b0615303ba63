package journaltest

import (
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// signalOrder sends the signals of three passes before their hook waits and the
// one that ends it afterwards. The last overtakes no other, whether it is delivered
// at once or from its row.
func signalOrder(b *bench) {
	c := b.committer()
	id := b.jobs(1)[0]
	for round, key := range []string{"outside", "row"} {
		var passes []*collation.Signal
		for _, name := range []string{"1", "2", "3"} {
			s := b.signal("t", key, name)
			s.Code = collation.CodePass
			require.Equal(b, store.SignalKept, b.tell(s).State)
			passes = append(passes, s)
		}
		b.altered(c, id, waits(collation.Wait{GUID: guid(round), Topic: "t", Key: key, Repeat: true}))
		last := b.signal("t", key, "4")
		var out []store.Outgoing
		if key == "outside" {
			got := b.tell(last)
			require.Equal(b, store.SignalConsumed, got.State)
			require.Equal(b, 1, got.Reached, "its own")
			out = got.Out
		} else {
			out = b.deliver(b.sent(c, id, last))
		}
		require.Len(b, out, 4)
		for i, s := range append(passes, last) {
			x := b.woken(&out[i].Row)
			require.Equal(b, i+1, x.Number)
			require.Equal(b, s.GUID, x.Signal)
			require.Nil(b, b.stored(c, id, b.box(s)), "handed over, and gone")
		}
		require.Equal(b, journal.ResponseTerminal, b.woken(&out[3].Row).Kind)
		require.Empty(b, b.deliver(b.box(passes[0])), "its own message finds nothing to do")
	}
	require.Empty(b, b.view(id).Waits)
	b.audit(id)
}

// signalQuarantined has a wait of a job that was taken out of service before that of
// one in service: nothing is written for the former any more, so that a signal
// that it took would be lost.
func signalQuarantined(b *bench) {
	c := b.committer()
	ids := b.jobs(2)
	b.altered(c, ids[0], waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k", Since: 1}))
	b.altered(c, ids[0], func(p *collation.Plan, _ *collation.State) { p.NewState = journal.JobQuarantined })
	require.Equal(b, store.SignalKept, b.tell(b.signal("t", "k", "early")).State)
	b.altered(c, ids[1], waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "k", Since: 2}))
	got := b.tell(b.signal("t", "k", "late"))
	require.NotEmpty(b, got.Out)
	require.Equal(b, ids[1], got.Out[0].Row.Job)
	require.Len(b, b.view(ids[0]).Waits, 1)
}
