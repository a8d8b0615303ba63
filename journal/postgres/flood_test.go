package postgres

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// C10, C15: a repeating hook gets one signal after another while its job closes. The close does
// not lose for ever: what it reads under the locks of the mailboxes cannot change before it
// writes.
func TestC15CloseUnderAFloodOfSignals(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	w := waitOf(id, 1, "k")
	w.Repeat = true
	require.NoError(t, register(t, c, id, w))
	var done atomic.Bool
	var flood sync.WaitGroup
	for who := range 6 {
		flood.Go(func() {
			for n := 0; !done.Load(); n++ {
				x := signalOf(s, "k", fmt.Sprint(who, " ", n))
				x.Code = collation.CodePass
				if _, err := s.driven().Signal(t.Context(), x, resend); err != nil {
					t.Errorf("signal: %v", err)
				}
			}
		})
	}
	defer flood.Wait()
	defer done.Store(true)
	for range 50 {
		st := load(t, c, store.Want{Job: id})
		require.NoError(t, c.More(t.Context(), map[journal.JobID]*collation.Need{id: {AllRows: true}}))
		p := plan(st)
		p.CancelWaits = []collation.CancelledWait{{GUID: w.GUID, Count: st.Waits[w.GUID].Count}}
		err := c.Commit(t.Context(), []store.Chained{chained(st, p)})
		require.NoError(t, err)
		w.GUID[1]++
		require.NoError(t, register(t, c, id, w))
	}
}
