package soak

import (
	"math/bits"

	"pgregory.net/rapid"
)

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
