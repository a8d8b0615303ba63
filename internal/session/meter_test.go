package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// O9: a meter tells the runs of the last minute, of each topic, and keeps no more samples than fit
// into it.
func TestO9Meter(t *testing.T) {
	t.Parallel()
	m := newCounter([]string{"a", "b"})
	now := time.Unix(1_700_000_000, 0)
	require.Equal(t, []int64{0, 0}, m.lately(now))
	for range 300 { // a run of a each second, five minutes long
		m.add("a")
		m.add("other")
		now = now.Add(time.Second)
		require.LessOrEqual(t, m.lately(now)[0], int64(60))
		m.lately(now.Add(time.Millisecond)) // a renewal in between
		require.LessOrEqual(t, len(m.seen), 62)
	}
	m.add("b")
	require.Equal(t, []int64{60, 1}, m.lately(now))
	require.Equal(t, []int64{30, 1}, m.lately(now.Add(30*time.Second)))
	require.Equal(t, []int64{0, 0}, m.lately(now.Add(10*time.Minute)), "also if nothing was told for long")
}
