package journaltest

import (
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

var interrupts = cases{
	"one of many at once with the same GUID is fresh (C7)":   interruptRace,
	"a repetition while it is handled leaves nothing behind": interruptHandled,
}

// interruptOf returns the row of an interrupt of a job.
func (b *bench) interruptOf(target journal.JobID, caller string) collation.Row {
	b.Helper()
	o := collation.InterruptOrder{Code: collation.CodeInterrupted, Reason: "enough", Throw: true, From: caller}
	return got(o.Row(collation.AskedInterruptGUID(caller, target), target, 1))(b)
}

// interrupt inserts the row, and says whether the interrupt was not known.
func (b *bench) interrupt(row collation.Row) bool {
	_, fresh, err := b.s.Interrupt(b.ctx(), row, b.mode)
	b.check(err)
	return fresh
}

func interruptRace(b *bench) {
	id := b.jobs(1)[0]
	row := b.interruptOf(id, "x")
	var fresh atomic.Int64
	together(8, func(int) {
		if b.interrupt(row) {
			fresh.Add(1)
		}
	})
	require.Equal(b, int64(1), fresh.Load())
	require.Len(b, b.view(id).Rows, 2)
	stored := b.row(id, journal.MessageInterrupt, "")
	require.Greater(b, stored.PublishedAt, collation.Micros(1), "the time is the store's (J5)")
	require.Equal(b, stored.PublishedAt+b.mode.Resend, stored.NextAt)
}

// interruptHandled repeats interrupts while they are handled. A row that came after its receipt
// would stay for ever.
func interruptHandled(b *bench) {
	for _, id := range b.jobs(10) {
		row := b.interruptOf(id, "x")
		b.interrupt(row)
		together(4, func(i int) {
			if i > 0 {
				b.interrupt(row)
			} else if _, err := b.handle(b.c, Message(&row)); err != nil {
				b.Errorf("%v", err)
			}
		})
		v := b.view(id)
		require.Equal(b, journal.JobInterrupted, v.State)
		for _, r := range v.Rows {
			require.NotEqual(b, row.GUID, r.GUID)
		}
	}
}
