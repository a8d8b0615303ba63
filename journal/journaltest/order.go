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
