package quiputest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// Everything in a branch that lost, or nested in one, is lost.
func TestLostPositions(t *testing.T) {
	t.Parallel()
	request := journal.GUID{1}
	won := winners{request: {"2": 1, "4.0.1": 0}}
	for position, lost := range map[string]bool{
		"": false, "1": false, "2": false, "2.1.1": false, "2.0.1": true, "2.2.7": true, "2.0.1.0.1": true, "2.1.1.0.1": false,
		"3.0.1": false, "4.0.1": false, "4.1.1": false, "4.0.1.0.3": false, "4.0.1.1.3": true, "22.0.1": false,
	} {
		require.Equal(t, lost, won.lost(request, position), position)
		require.False(t, won.lost(journal.GUID{2}, position))
	}
}

// How far losing branches come is not compared, and boundaries that they miss are not required.
// Here a death at the loser's call lets the other branch win first.
func TestCrashLeavesLosersAlone(t *testing.T) {
	t.Parallel()
	r := recordCrashes(t, func(_ testing.TB, w *World) {
		work := func(ctx context.Context) (string, error) {
			slept := workers.Sleep(ctx, "nearly an hour", time.Hour-time.Second)
			_, err := effects.Do(ctx, "work", func(ctx context.Context) (string, error) {
				w.Receiver("outside").Apply(ctx, effects.Key(ctx))
				return "", nil
			}, effects.Idempotent)
			return "worked", errors.Join(slept, err, workers.Sleep(ctx, "another hour", time.Hour))
		}
		bound := func(ctx context.Context) (string, error) { return "too late", workers.Sleep(ctx, "an hour", time.Hour) }
		w.Serve(func(reg *workers.Registry) {
			workers.HandleDurable(reg, "race", func(ctx context.Context, _ any) (string, error) {
				_, said, err := workers.First(ctx, work, bound)
				return said, err
			})
		})
		var out string
		w.Call("race", "r-1", nil).Output(&out)
		require.Equal(t, "too late", out)
	})
	require.False(t, r.failed, r.text())
	require.Contains(t, r.text(), `before the start of effect "work" (call 1.0.2) was recorded`)
}
