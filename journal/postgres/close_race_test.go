package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// C15: a signal is delivered while a close reads what it cancels. The close sees the wait, and
// then loses it and decides again, or it sees the wake-up. If it saw neither it would leave both
// behind.
func TestC15CloseSeesTheWaitOrItsWakeUp(t *testing.T) {
	t.Parallel()
	for _, repeat := range []bool{false, true} {
		s := open(t)
		id := startJobs(t, s, "k")[0]
		c := openCommitter(t, s)
		w := waitOf(id, 1, "k")
		w.Repeat = repeat
		require.NoError(t, register(t, c, id, w))
		// A row that a worker locks for a while, as a Tx effect does.
		worker := blocker(t, s, "SELECT 1 FROM dispatches WHERE kind = 'start' FOR UPDATE")
		st := load(t, c, store.Want{Job: id})
		read := make(chan error)
		go func() { read <- c.More(t.Context(), map[journal.JobID]*collation.Need{id: {AllRows: true}}) }()
		waitFor(t, s, someoneWaits)
		x := signalOf(s, "k", "")
		x.Code = collation.CodePass
		got := must(s.driven().Signal(t.Context(), x, resend))(t)
		require.Equal(t, store.SignalConsumed, got.State)
		must(worker.Exec(t.Context(), "COMMIT"))(t)
		require.NoError(t, <-read)

		if st.Rows[got.Out[0].Row.GUID] != nil {
			continue
		}
		require.NotNil(t, st.Waits[w.GUID], "repeat: %t", repeat)
		p := plan(st)
		p.CancelWaits = []collation.CancelledWait{{GUID: w.GUID, Count: st.Waits[w.GUID].Count}}
		require.ErrorIs(t, c.Commit(t.Context(), []store.Chained{chained(st, p)}), store.ErrLost, "repeat: %t", repeat)
	}
}
