package quiputest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/workers"
)

// hourly is a durable function that sleeps by the hour.
func hourly(ctx context.Context, hours int) (int, error) {
	for n := range hours {
		if err := workers.Sleep(ctx, fmt.Sprint("hour ", n), time.Hour); err != nil {
			return n, err
		}
	}
	return hours, nil
}

// sleeping is a scenario of one job that sleeps by the hour for so many days.
func sleeping(days int) Scenario {
	return func(t testing.TB, w *World) {
		w.Serve(func(reg *workers.Registry) { workers.HandleDurable(reg, "sleep", hourly) })
		var slept int
		w.Call("sleep", "s-1", days*24).Output(&slept)
		require.Equal(t, days*24, slept)
	}
}

// asTest runs f in a test: a bubble of time has to be one's, and no benchmark's.
func asTest(b *testing.B, f func(*testing.T)) {
	b.Helper()
	var once sync.Once // -count is meant for the benchmark
	ok := testing.RunTests(
		func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: b.Name(), F: func(t *testing.T) { once.Do(func() { f(t) }) }}},
	)
	if !ok {
		b.Fatal("the scenario failed")
	}
}

// BenchmarkSleeps is a durable function that sleeps by the hour, in a world: its
// journal is verified, too.
func BenchmarkSleeps(b *testing.B) {
	for _, days := range []int{5, 30, 120, 350} {
		b.Run(fmt.Sprint(days, " days"), func(b *testing.B) {
			for b.Loop() {
				asTest(b, func(t *testing.T) { Run(t, sleeping(days)) })
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*days*24), "µs/sleep")
		})
	}
}

// BenchmarkCrashEverywhere is the same function, whose process dies at as many of its
// boundaries as are tried by default.
func BenchmarkCrashEverywhere(b *testing.B) {
	for _, days := range []int{30, 120} {
		b.Run(fmt.Sprint(days, " days"), func(b *testing.B) {
			for b.Loop() {
				asTest(b, func(t *testing.T) { CrashEverywhere(t, sleeping(days), Seed(1)) })
			}
		})
	}
}
