package postgres

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// 1.11, T11: more signals were kept for a repeating hook than one transaction delivers. The
// signal that ends the hook, sent once it waits, overtakes none of them, whichever of their
// messages comes first.
func TestKeptSignalsAreNotOvertaken(t *testing.T) {
	t.Parallel()
	const many = 2*collation.MaxDue + 40
	s := open(t)
	id := startJobs(t, s, "k")[0]
	var keys []collation.RowKey
	for n := range many {
		x := signalOf(s, "k", fmt.Sprint(n))
		x.Code = collation.CodePass
		got := must(s.driven().Signal(t.Context(), x, resend))(t)
		require.Equal(t, store.SignalKept, got.State)
		keys = append(keys, mailOf(s, x))
	}
	w := waitOf(id, 1, "k")
	w.Repeat = true
	require.NoError(t, register(t, openCommitter(t, s), id, w))
	last := signalOf(s, "k", "last")
	got := must(s.driven().Signal(t.Context(), last, resend))(t)
	require.Equal(t, store.SignalKept, got.State, "it waits its turn")
	require.Len(t, got.Out, collation.MaxDue)
	woken := got.Out
	for _, k := range []collation.RowKey{mailOf(s, last), keys[many-1], mailOf(s, last)} {
		out := must(s.driven().Deliver(t.Context(), []collation.RowKey{k}, resend))(t)
		woken = append(woken, out...)
	}
	require.Len(t, woken, many+1)
	for n := range woken {
		x := must(journal.DecodeResponse(woken[n].Row.Body))(t)
		require.Equal(t, n+1, x.Number)
		if n < many {
			require.Equal(t, keys[n].GUID, x.Signal)
		} else {
			require.Equal(t, last.GUID, x.Signal)
		}
	}
}
