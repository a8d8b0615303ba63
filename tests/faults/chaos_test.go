package faults

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/dev"
	"github.com/quipu-journal/quipu/tests/faults/play"
	"github.com/quipu-journal/quipu/tests/rig"
)

// A round is load under faults, then quiet until every job has ended.
const (
	stormLoad  = 22 * time.Second
	stormBatch = 4                     // jobs started one after another
	stormDelay = 80 * time.Millisecond // of an answer from outside, at most
	rebirth    = 100 * time.Millisecond
)

// storm is a round of TestChaos: a cell whose processes, its others, keep their
// places, and whose faults come at random.
type storm struct {
	*cell
	seed   uint64
	counts map[string]int // faults that were done
}

// TestChaos runs all fault kinds that one machine has at the same time, over and
// over, and holds each round to the laws of the cells. What single faults do is in
// the cells, and every kind of activity under faults is in the simulator and the
// model; this one is for what only the coincidence of faults finds on real servers.
//
// QUIPU_CHAOS is how long it begins new rounds; without it there are none.
// QUIPU_CHAOS_SEED repeats the choices of a run: faults, pauses, limits and load;
// which of them meet is up to the machine.
func TestChaos(t *testing.T) {
	if os.Getenv("QUIPU_CHAOS") == "" {
		t.Skip("QUIPU_CHAOS is not set")
	}
	span, err := time.ParseDuration(os.Getenv("QUIPU_CHAOS"))
	require.NoError(t, err, "QUIPU_CHAOS is a duration such as 10m")
	seed := rand.Uint64()
	if s := os.Getenv("QUIPU_CHAOS_SEED"); s != "" {
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "QUIPU_CHAOS_SEED is a number that an earlier run printed")
	}
	t.Logf("QUIPU_CHAOS_SEED=%d", seed)
	l, begun := newLane(t), time.Now()
	rounds, failed, jobs, workers, latest, counts := 0, 0, 0, 0, time.Duration(0), map[string]int{}
	for ; time.Since(begun) < span && !t.Failed(); rounds++ {
		s := &storm{cell: &cell{kind: &kind{name: "chaos"}, lane: l, round: rounds}, seed: seed, counts: map[string]int{}}
		if !t.Run(fmt.Sprintf("round-%d", rounds), s.play) {
			failed++
		}
		jobs, workers, latest = jobs+len(s.started), max(workers, len(s.others)), max(latest, s.ended)
		for what, n := range s.counts {
			counts[what] += n
		}
	}
	t.Logf("%d rounds in %s, %d failed: %d jobs, up to %d workers at a time, %v; all jobs had ended at the latest %s after the faults",
		rounds, time.Since(begun).Round(time.Second), failed, jobs, workers, counts, latest.Round(10*time.Millisecond))
}

// play is the round.
func (s *storm) play(t *testing.T) {
	s.t = t
	dice := s.dice("round")
	s.setUp()
	s.outside.Mood = s.mood()
	s.unwatch = s.watch()
	s.others = make([]*rig.Process, 2+dice.IntN(2))
	stopWorkers := s.background(func(ctx context.Context, wg *sync.WaitGroup) {
		for slot := range s.others {
			wg.Go(func() { s.keep(ctx, slot) })
		}
	})
	s.eventually("a process in every place", func() error {
		if n := len(s.processes()); n < len(s.others) {
			return fmt.Errorf("%d of %d", n, len(s.others))
		}
		return nil
	})
	stopFaults := s.background(func(ctx context.Context, wg *sync.WaitGroup) {
		for _, f := range s.chosen(dice) {
			wg.Go(func() { s.often(ctx, f) })
		}
	})
	s.load()
	stopFaults()
	s.end()
	t.Logf("%d workers, %d jobs, %v; all ended %s after the faults", len(s.others), len(s.started), s.counts, s.ended)
	stopWorkers()
	s.unwatch()
	s.check()
}

// dice are the choices of one goroutine, so that the seed repeats them however
// the goroutines meet.
func (s *storm) dice(owner string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, s.round, owner)
	return rand.New(rand.NewPCG(s.seed, h.Sum64())) //nolint:gosec // choices, no secret
}

// background starts goroutines that end with the returned stop, or the test: no
// process and no stopped server outlives a round that fails.
func (s *storm) background(start func(context.Context, *sync.WaitGroup)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	start(ctx, &wg)
	stop = func() { cancel(); wg.Wait() }
	s.t.Cleanup(stop)
	return stop
}

// mood has the service outside take its time, so that a fault can fall between
// doing and answering; a fourth of its answers say that it is unavailable, although it
// applied the call.
func (s *storm) mood() func() (time.Duration, int) {
	var mu sync.Mutex
	dice := s.dice("mood")
	return func() (time.Duration, int) {
		mu.Lock()
		defer mu.Unlock()
		return rig.Between(dice, 0, stormDelay), pick(dice, http.StatusOK, http.StatusOK, http.StatusOK, http.StatusServiceUnavailable)
	}
}

// load starts jobs until the round's time is over. Some inputs are too long for a
// message (T4).
func (s *storm) load() {
	dice, until := s.dice("load"), time.Now().Add(stormLoad)
	for n := 0; time.Now().Before(until); {
		for range stormBatch {
			s.startJob(fmt.Sprintf("order-%d%s", n, pick(dice, "", "", "", "", "", play.Huge)))
			n++
		}
		rig.Pause(s.t.Context(), rig.Between(dice, 0, 900*time.Millisecond))
	}
}

// keep holds a place until ctx ends: whenever its process has gone, by a fault or
// because it could not open its connections during one, another takes its place.
// The last one is drained. Processes of one space need not be alike, and the
// smallest limits find the most (F16).
func (s *storm) keep(ctx context.Context, slot int) {
	dice := s.dice(fmt.Sprint("slot ", slot))
	for ctx.Err() == nil {
		c := s.config()
		c.Stepwise, c.NoFold, c.NoLocal = dice.IntN(3) == 0, dice.IntN(3) == 0, dice.IntN(2) == 0 // modes mix (C11)
		c.MaxBatch, c.Committers, c.Concurrency = pick(dice, 1, 1, 2, 7, 500), 1+dice.IntN(3), 2+dice.IntN(8)
		p := startProcess(s.t, s.lane.program, c)
		s.mu.Lock()
		s.others[slot] = p
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			assert.NoError(s.t, p.Drain(patience), "T10: %s", p.Log)
		case <-p.Gone:
			rig.Pause(ctx, rebirth)
		}
	}
}

// trouble is one kind of fault, and the pause before each.
type trouble struct {
	name      string
	low, high time.Duration
	do        func(context.Context, *rand.Rand)
}

// chosen are the faults of a round. Every third round has all. The odd ones let
// NATS and the processes live, so that what is lost with a stream or a connection
// is found by those who lost it. The others have any, at least one.
func (s *storm) chosen(dice *rand.Rand) (out []trouble) {
	all := []trouble{
		{"kill", 300 * time.Millisecond, 2500 * time.Millisecond, s.killOne},
		{"stop", 500 * time.Millisecond, 2 * time.Second, s.stopOne},
		{"term", 2 * time.Second, 5 * time.Second, s.termOne},
		{"postgres", 3 * time.Second, 7 * time.Second, s.restartEither},
		{"nats", 2 * time.Second, 6 * time.Second, func(context.Context, *rand.Rand) {
			assert.NoError(s.t, s.lane.nats.Restart(context.Background()))
		}},
		{"stream", 300 * time.Millisecond, 1500 * time.Millisecond, s.breakStreams},
	}
	set := 1 + dice.IntN(1<<len(all)-1)
	switch {
	case s.round%3 == 0:
		return all
	case s.round%2 == 1:
		set = 0b101110 // all but kill and nats
	}
	for i, f := range all {
		if set&(1<<i) != 0 {
			out = append(out, f)
		}
	}
	return out
}

// often does f after each pause until ctx ends.
func (s *storm) often(ctx context.Context, f trouble) {
	dice := s.dice(f.name)
	for rig.Pause(ctx, rig.Between(dice, f.low, f.high)) {
		f.do(ctx, dice)
		s.mu.Lock()
		s.counts[f.name]++
		s.mu.Unlock()
	}
}

// one is one of the processes that live.
func (s *storm) one(dice *rand.Rand) *rig.Process {
	of := s.processes()
	return of[dice.IntN(len(of))]
}

func (s *storm) killOne(_ context.Context, dice *rand.Rand) { s.one(dice).Kill() }

// stopOne makes a process stand still past its lease, or nearly so: another takes
// its requests over before it wakes up.
func (s *storm) stopOne(ctx context.Context, dice *rand.Rand) {
	goOn := s.one(dice).Stand()
	rig.Pause(ctx, rig.Between(dice, lease, 3*lease))
	goOn()
}

// termOne has a process drain. Without its servers it may end with an error, but
// it must end (T10).
func (s *storm) termOne(_ context.Context, dice *rand.Rand) {
	p := s.one(dice)
	assert.NotErrorIs(s.t, p.Drain(patience), rig.ErrHangs, "T10: %s", p.Log)
}

// restartEither finishes when the server is back, whatever ctx says: the round's
// end needs it.
func (s *storm) restartEither(_ context.Context, dice *rand.Rand) {
	assert.NoError(s.t, s.lane.pg.Restart(context.Background(), pick(dice, dev.StopFast, dev.StopImmediate)))
}

// breakStreams takes some of the space's streams away, or their messages, or their
// consumers. NATS may be away just now; then there is nothing to break.
func (s *storm) breakStreams(ctx context.Context, dice *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	do := pick(dice, deleteStream, purgeStream, deleteConsumersOf)
	_ = s.streams(ctx, func(ctx context.Context, js jetstream.JetStream, one jetstream.Stream) error {
		if dice.IntN(3) > 0 {
			return nil
		}
		return do(ctx, js, one)
	})
}

// pick is one of some values.
func pick[T any](dice *rand.Rand, of ...T) T { return of[dice.IntN(len(of))] }
