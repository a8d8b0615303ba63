package quiputest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
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

// seenBy are the boundaries of a scenario, in the order of their numbers.
func seenBy(t *testing.T, scenario Scenario) []boundary {
	t.Helper()
	cfg := configure(nil)
	calm := newCrash()
	stage{t}.bubble(func(t testing.TB) { play(t, &cfg, calm, scenario) })
	return calm.seen
}

// The turns of a loop are alike, its beginning and its end are not, nor are waits of
// other names.
func TestBoundariesOfALoopAreAlike(t *testing.T) {
	t.Parallel()
	kinds := func(days int) (out []string) {
		known := map[string]bool{}
		seen := seenBy(t, sleeping(days))
		for i := range seen {
			if k := seen[i].kind(); !known[k] {
				known[k] = true
				out = append(out, seen[i].text())
			}
		}
		return out
	}
	one, two := kinds(1), kinds(2)
	require.Equal(t, one, two)
	require.Equal(t, []string{
		`job "s-1", call at ,0,0: when its request came, before it ran`,
		`job "s-1", call at ,0,0: before its response (suspended) was sent`,
		`job "s-1", call at ,0,0: after its response (suspended) was sent, before its request was acked`,
		`job "s-1", call at ,0,0, turn 2: when its request came, before it ran`,
		`job "s-1", call at ,0,0, turn 2: before its response (suspended) was sent`,
		`job "s-1", call at ,0,0, turn 2: after its response (suspended) was sent, before its request was acked`,
		`job "s-1", call at ,0,0: before its response (terminal) was sent`,
		`job "s-1", call at ,0,0: after its response (terminal) was sent, before its request was acked`,
	}, one)

	slept := func(name string) string {
		return standing(wire.SuspendedUntil([]wire.Pause{{Kind: journal.PauseSleep, Name: name}}))
	}
	two = nil
	for _, b := range []boundary{
		{place: place{request: "r", turn: 2}, stands: slept("day 1")},
		{place: place{request: "r", turn: 3}, stands: slept("day 22")},
		{place: place{request: "r", turn: 4}, stands: slept("night 1")},
		{place: place{request: "r", what: `"remind[Ada]" (call 1)`}},
		{place: place{request: "r", what: `"remind[Bob]" (call 2)`}},
		{place: place{request: "r", what: `"thank" (call 3)`}},
	} {
		two = append(two, b.kind())
	}
	require.Equal(t, two[0], two[1])
	require.NotEqual(t, two[1], two[2])
	require.Equal(t, two[3], two[4])
	require.NotEqual(t, two[4], two[5])
}

// loop are the boundaries of a scenario that has so many turns of each kind.
func loop(kinds, turns int) (seen []boundary) {
	for turn := range turns {
		for kind := range kinds {
			seen = append(seen, boundary{place: place{request: string(rune('a' + kind)), nth: turn}})
		}
	}
	return seen
}

// Of a scenario with thousands of boundaries as many are tried as it can be played in
// bounded time, the first and the last of each kind among them; of another one, all or
// as many as the test says.
func TestLongScenariosAreTriedAtFewerBoundaries(t *testing.T) {
	t.Parallel()
	chosen := func(seen []boundary, options ...Option) (out []int) {
		c := configure(append(options, Seed(3))).crashes
		witness(t, func(h host) { out = c.choose(h, seen) })
		require.IsIncreasing(t, out)
		return out
	}
	require.Len(t, chosen(loop(4, 50)), DefaultBoundaries, "all")
	require.Len(t, chosen(loop(4, 51)), DefaultBoundaries)
	require.Len(t, chosen(loop(4, 3000)), maxSteps/12_000)
	require.Len(t, chosen(loop(4, 3000), Boundaries(100)), 100)
	require.Len(t, chosen(loop(4, 100), Boundaries(400)), 400, "all")
	endless := chosen(loop(20, 1000))
	require.Equal(t, append(drawBelow(20), 19_980, 19_981), endless[:22], "its ends")
	require.Len(t, endless, 40)
	for seed := range uint64(4) {
		few := draw(rand.New(rand.NewPCG(seed, 0)), []int{0, 9}, 1, 10, 3)
		require.Len(t, few, 3)
		require.Condition(t, func() bool { return few[0] == 0 || few[2] == 9 }, fmt.Sprint(few))
	}
}

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
