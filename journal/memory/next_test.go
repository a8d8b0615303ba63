package memory_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/memory"
	"github.com/quipu-journal/quipu/journal/store"
)

// Next is the first time at which the clock alone changes something: the due time of a row that
// is not held, or the end of a kept signal.
func TestNext(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	now := collation.Micros(1_000_000)
	s := memory.New(memory.Config{Now: func() int64 { return int64(now) }})
	isNext := func(next, kept collation.Micros, why string) {
		t.Helper()
		first, expires := s.Next()
		require.Equal(t, next, first, why)
		require.Equal(t, kept, expires, "the signal: "+why)
	}
	isNext(collation.Never, collation.Never, "there is nothing")

	signal := &collation.Signal{
		GUID: collation.SignalGUID("memory", "paid", "k", "1"), Topic: "paid", Key: "k", Code: collation.CodeOK,
		Payload: []byte(`1`), Keep: 60_000_000,
	}
	_, err := journaltest.Driven{Store: s}.Signal(ctx, signal, collation.Mode{})
	require.NoError(t, err)
	expires := now + signal.Keep
	isNext(expires, expires, "the signal expires")

	_, err = journaltest.Driven{Store: s}.Start(ctx, []store.Start{{
		Flow: journal.FlowRef{Name: "f", Version: "1"}, Trigger: "start", Key: "k", Input: []byte(`1`),
	}}, collation.Mode{})
	require.NoError(t, err)
	begins := now
	isNext(begins, expires, "the start is due")

	now += 120_000_000
	isNext(begins, expires, "they are overdue")
	n, err := journaltest.Driven{Store: s}.ExpireSignals(ctx, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	rows, _, err := s.Due(ctx, 10)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	_, err = s.Claim(ctx, []store.Claim{{Row: rows[0], Again: time.Hour}})
	require.NoError(t, err)
	isNext(now+collation.Micros(time.Hour.Microseconds()), collation.Never, "the start is put off")
}
