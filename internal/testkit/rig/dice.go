package rig

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"time"

	"pgregory.net/rapid"
)

// Between is a span from low up to high.
func Between(dice *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(dice.Int64N(int64(high-low)+1))
}

// Pause waits, and says whether ctx is still alive.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Evenly draws 0 to n, all equally often; the generators of rapid prefer small numbers.
// It shrinks to 0.
func Evenly(t *rapid.T, label string, n int) int {
	return rapid.Custom(func(t *rapid.T) int {
		v := 0
		for range bits.Len(uint(n)) + 3 { //nolint:gosec // n is small
			v <<= 1
			if rapid.Bool().Draw(t, "bit") {
				v++
			}
		}
		return v % (n + 1)
	}).Draw(t, label)
}
