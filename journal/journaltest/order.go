package journaltest

import (
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// signalQuarantined has an older wait of a quarantined job and a wait of an open one. Nothing is
// written for the quarantined job any more, so a signal that its wait took would be lost.
func signalQuarantined(b *bench) {
	b.odd = true
	ids := b.jobs(2)
	b.altered(ids[0], waits(collation.Wait{GUID: guid(1), Topic: "t", Key: "k", Since: 1}))
	b.altered(ids[0], func(p *collation.Plan, _ *collation.State) { p.NewState = journal.JobQuarantined })
	require.Equal(b, store.SignalKept, b.tell(b.signal("t", "k", "early")).State)
	b.altered(ids[1], waits(collation.Wait{GUID: guid(2), Topic: "t", Key: "k", Since: 2}))
	got := b.tell(b.signal("t", "k", "late"))
	require.NotEmpty(b, got.Out)
	require.Equal(b, ids[1], got.Out[0].Row.Job)
	require.Len(b, b.view(ids[0]).Waits, 1)
}
