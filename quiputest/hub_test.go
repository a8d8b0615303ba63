package quiputest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A year in which nothing happens takes a few looks, not one for each sweep.
func TestAnIdleYearIsQuiet(t *testing.T) {
	t.Parallel()
	Run(t, func(t testing.TB, w *World) {
		w.Settle()
		told, stop, done := 0, make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for rest(stop, w.hub.changed(), forever) {
				told++
			}
		}()
		w.Advance(365 * 24 * time.Hour)
		close(stop)
		<-done
		require.Less(t, told, 10)
	})
}
