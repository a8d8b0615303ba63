package backoff

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDelayDoublesUpToItsBound(t *testing.T) {
	t.Parallel()
	for doublings, want := range map[int]time.Duration{
		-1: 50, 0: 50, 1: 100, 2: 200, 5: 1600, 6: 2000, 62: 2000, 63: 2000, math.MaxInt: 2000,
	} {
		require.Equal(t, want, Delay(doublings, 50, 2000, nil), doublings)
	}
	require.Equal(t, time.Duration(10), Delay(0, 50, 10, nil), "the bound goes before the unit")
	require.Equal(t, time.Duration(math.MaxInt64), Delay(63, 1, math.MaxInt64, nil))
}

func TestDelayDrawsItsUpperHalf(t *testing.T) {
	t.Parallel()
	least := func(time.Duration) time.Duration { return 0 }
	highest := func(below time.Duration) time.Duration { return below - 1 }
	for _, unit := range []time.Duration{1, 2, 7, 8} {
		require.Equal(t, unit/2, Delay(0, unit, 100, least))
		require.Equal(t, unit, Delay(0, unit, 100, highest))
	}
}
