package world

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// Settings are how long a test begins new rounds and the seed of its choices, as the
// variables NAME and NAME_SEED say, where they do.
func Settings(t testing.TB, name string, span time.Duration) (time.Duration, uint64) {
	t.Helper()
	seed := rand.Uint64()
	var err error
	if s := os.Getenv(name); s != "" {
		span, err = time.ParseDuration(s)
		require.NoError(t, err, "%s is a duration such as 10m", name)
	}
	if s := os.Getenv(name + "_SEED"); s != "" {
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "%s_SEED is a number that an earlier run printed", name)
	}
	return span, seed
}

// Trouble is one kind of fault, and the pause before each.
type Trouble struct {
	Name      string
	Low, High time.Duration
	Do        func(context.Context, *rand.Rand)
}

// Every is a trouble.
func Every(name string, low, high time.Duration, do func(context.Context, *rand.Rand)) Trouble {
	return Trouble{name, low, high, do}
}

// Storm has processes that keep their places, and faults that come to them and their
// servers at random.
type Storm struct {
	T     testing.TB
	PG    *dev.Postgres
	NATS  *dev.NATS
	Lease time.Duration
	// Dice are the choices of one goroutine, so that a seed repeats them however the
	// goroutines meet.
	Dice func(owner string) *rand.Rand

	mu     sync.Mutex
	places []*Process // nil before the first
	counts map[string]int
}

// Keep holds places until the returned stop, or the end of the test: whenever a process
// has gone, by a fault or because it could not open its connections during one, another
// is started. Those that are left in the end are given to last.
func (s *Storm) Keep(places int, start func(*rand.Rand) *Process, last func(*Process)) (stop func()) {
	s.places = make([]*Process, places)
	return s.background(places, func(ctx context.Context, slot int) {
		dice := s.Dice("place " + strconv.Itoa(slot))
		for ctx.Err() == nil {
			p := start(dice)
			s.mu.Lock()
			s.places[slot] = p
			s.mu.Unlock()
			select {
			case <-ctx.Done():
				last(p)
			case <-p.Gone:
				Pause(ctx, 100*time.Millisecond)
			}
		}
	})
}

// Make makes trouble until the returned stop, or the end of the test: after that nothing
// is stopped or away.
func (s *Storm) Make(troubles ...Trouble) (stop func()) {
	return s.background(len(troubles), func(ctx context.Context, n int) {
		x := &troubles[n]
		dice := s.Dice(x.Name)
		for Pause(ctx, Between(dice, x.Low, x.High)) {
			x.Do(ctx, dice)
			s.Count(x.Name)
		}
	})
}

func (s *Storm) background(n int, do func(ctx context.Context, i int)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(ctx, i) })
	}
	stop = func() { cancel(); devtest.AwaitAll(s.T, "the end of what the storm keeps or makes", wg.Wait) }
	s.T.Cleanup(stop)
	return stop
}

// Count counts what happened.
func (s *Storm) Count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[what]++
}

// Counts are how often each trouble was made, and what else was counted.
func (s *Storm) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// Processes are those that have places.
func (s *Storm) Processes() (all []*Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.places {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// Victim is one of the processes, nil before the first.
func (s *Storm) Victim(dice *rand.Rand) *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[dice.IntN(len(s.places))]
}

// Kill kills a process (F1).
func (s *Storm) Kill(_ context.Context, dice *rand.Rand) {
	if p := s.Victim(dice); p != nil {
		p.Kill()
	}
}

// Stop makes a process stand still past its lease, or nearly so: another takes its
// requests over before it wakes up (F2).
func (s *Storm) Stop(ctx context.Context, dice *rand.Rand) {
	if p := s.Victim(dice); p != nil {
		goOn := p.Stand()
		Pause(ctx, Between(dice, s.Lease/2, 3*s.Lease))
		goOn()
	}
}

// RestartPostgres finishes when the server is back, whatever ctx says: the round's end
// needs it (F4).
func (s *Storm) RestartPostgres(_ context.Context, dice *rand.Rand) {
	how := dev.StopImmediate
	if dice.IntN(2) == 0 {
		how = dev.StopFast
	}
	assert.NoError(s.T, s.PG.Restart(context.Background(), how))
}

// RestartNATS finishes as RestartPostgres does (F9).
func (s *Storm) RestartNATS(context.Context, *rand.Rand) {
	assert.NoError(s.T, s.NATS.Restart(context.Background()))
}

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
