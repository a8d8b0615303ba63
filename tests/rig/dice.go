package rig

import (
	"context"
	"math/rand/v2"
	"time"
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
