package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/soak"
)

var (
	oneSeed = flag.Uint64("seed", 0, "play this seed only, and keep its log")
	from    = flag.Uint64("from", 1, "the first seed")
	count   = flag.Uint64("seeds", 0, "how many seeds")
	until   = flag.Bool("until", false, "stop at the first seed that fails, and say how many it took")
	during  = flag.Duration("during", 0, "go on for so long, with progress; 0: a thousand seeds")
)

// TestMain lets one goroutine run at a time: switching is cheap then, and more cores can run more
// processes. A run leaves little garbage, so it is collected rarely.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(1000)
	runtime.MemProfileRate = 0
	runtime.GOMAXPROCS(1)
	m.Run()
}

// seeds returns how many seeds are played by default.
func seeds() uint64 {
	switch {
	case *count > 0:
		return *count
	case testing.Short():
		return 500
	}
	return uint64(soak.Times(600, 50_000)) //nolint:gosec // some
}

// The simulator: whatever happens to processes, calls and messages, no invariant is ever broken,
// and everything ends once the faults are over (6.1, 6.4).
func TestSimulation(t *testing.T) {
	if *oneSeed != 0 {
		w := play(t, *oneSeed, false)
		t.Logf("seed %d: %d calls, %d commits, %v on its clock, hash %x", w.seed, w.steps, w.commits, w.ended.Sub(w.begun), w.hash)
		report(t, *oneSeed, w.wrongs)
		return
	}
	begun, said, bad := time.Now(), time.Now(), 0
	var steps, commits, played uint64
	var longest time.Duration
	var slowest uint64
	limit := time.Duration(soak.Times(8, 600)) * time.Second
	for seed := *from; ; seed++ {
		if *during > 0 && time.Since(begun) > *during ||
			*during == 0 && (played >= seeds() || *count == 0 && time.Since(begun) > limit) {
			break
		}
		w := play(t, seed, false)
		if *during > 0 && time.Since(said) > 10*time.Second {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "%v: %d seeds, %.0f a second, %d failed\n", time.Since(begun).Round(time.Second), played,
				float64(played)/time.Since(begun).Seconds(), bad)
		}
		played, steps, commits = played+1, steps+uint64(w.steps), commits+uint64(w.commits)
		if w.calm {
			if took := w.ended.Sub(w.calmed); took > longest {
				longest, slowest = took, seed
			}
		}
		if len(w.wrongs) > 0 && *until {
			t.Fatalf("killed after %d seeds by seed %d: %s", played, seed, w.wrongs[0])
		}
		if len(w.wrongs) > 0 {
			report(t, seed, w.wrongs)
			if bad++; bad == 5 {
				t.Error("enough")
				break
			}
		}
	}
	t.Logf("%d seeds from %d on, %d failed, in %v: %.0f seeds/s, %d calls and %d commits a seed; all jobs ended at the latest %v after the faults (seed %d; limit %v)",
		played, *from, bad, time.Since(begun).Round(time.Millisecond), float64(played)/time.Since(begun).Seconds(),
		steps/played, commits/played, longest, slowest, patience)
}

// The same seed gives the same run: no decision of a goroutine, a map or a select is visible.
func TestSameSeedSameTrace(t *testing.T) {
	if *oneSeed != 0 {
		t.Skip("one seed")
	}
	runtime.GOMAXPROCS(2) // they may differ in more ways then
	defer runtime.GOMAXPROCS(1)
	for seed := *from; seed < *from+60; seed++ {
		a, b := play(t, seed, false), play(t, seed, false)
		if a.hash != b.hash || a.steps != b.steps {
			t.Errorf("seed %d: hash %x after %d calls, then %x after %d: %s", seed, a.hash, a.steps, b.hash, b.steps, difference(t, seed))
		}
	}
}

// difference returns the first line in which two runs of a seed differ.
func difference(t *testing.T, seed uint64) string {
	first := strings.Split(play(t, seed, true).text.String(), "\n")
	for range 50 {
		next := strings.Split(play(t, seed, true).text.String(), "\n")
		for i := range min(len(first), len(next)) {
			if first[i] != next[i] {
				return fmt.Sprintf("after\n%s\nfollows\n%s\nor\n%s", strings.Join(first[max(0, i-12):i], "\n"), first[i], next[i])
			}
		}
	}
	return "50 runs more were the same"
}
