package faults

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"

	"github.com/quipu-journal/quipu/internal/testkit/world"
)

// A round is load under faults, then quiet until every job has ended.
const (
	stormLoad  = 22 * time.Second
	stormBatch = 4                     // jobs started one after another
	stormDelay = 80 * time.Millisecond // of an answer from outside, at most
)

// chaos is a round of TestChaos: a cell whose processes keep their places, and whose
// faults come at random.
type chaos struct {
	*cell
	seed uint64
	// collector takes the connections of who sends telemetry, and never answers.
	collector string
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
	span, seed := world.Settings(t, "QUIPU_CHAOS", 0)
	t.Logf("QUIPU_CHAOS_SEED=%d", seed)
	l, begun := newLane(t), time.Now()
	rounds, failed, jobs, workers, latest, counts := 0, 0, 0, 0, time.Duration(0), map[string]int{}
	for ; time.Since(begun) < span && !t.Failed(); rounds++ {
		s := &chaos{cell: &cell{kind: &kind{name: "chaos"}, lane: l, round: rounds, storm: &world.Storm{}}, seed: seed}
		if !t.Run(fmt.Sprintf("round-%d", rounds), s.play) {
			failed++
		}
		jobs, workers, latest = jobs+len(s.started), max(workers, len(s.storm.Processes())), max(latest, s.ended)
		for what, n := range s.storm.Counts() {
			counts[what] += n
		}
	}
	t.Logf("%d rounds in %s, %d failed: %d jobs, up to %d workers at a time, %v; all jobs had ended at the latest %s after the faults",
		rounds, time.Since(begun).Round(time.Second), failed, jobs, workers, counts, latest.Round(10*time.Millisecond))
}

// play is the round.
func (s *chaos) play(t *testing.T) {
	s.t = t
	dice := s.dice("round")
	s.setUp()
	s.outside.Mood, s.collector = s.mood(), silent(t)
	s.unwatch = s.watch()
	s.storm = &world.Storm{T: t, PG: s.lane.pg, NATS: s.lane.nats, Lease: lease, Dice: s.dice}
	stopWorkers := s.storm.Keep(2+dice.IntN(2), s.start, func(p *world.Process) {
		assert.NoError(t, p.Drain(patience), "T10: %s", p.Log)
	})
	stopFaults := s.storm.Make(s.chosen(dice)...)
	s.load()
	stopFaults()
	s.end()
	t.Logf("%d workers, %d jobs, %v; all ended %s after the faults", len(s.storm.Processes()), len(s.started), s.storm.Counts(), s.ended)
	stopWorkers()
	s.unwatch()
	s.check()
}

// dice are the choices of one goroutine, so that the seed repeats them however
// the goroutines meet.
func (s *chaos) dice(owner string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, s.round, owner)
	return rand.New(rand.NewPCG(s.seed, h.Sum64())) //nolint:gosec // choices, no secret
}

// mood has the service outside take its time, so that a fault can fall between
// doing and answering; a fourth of its answers say that it is unavailable, although it
// applied the call.
func (s *chaos) mood() func() (time.Duration, int) {
	var mu sync.Mutex
	dice := s.dice("mood")
	return func() (time.Duration, int) {
		mu.Lock()
		defer mu.Unlock()
		return world.Between(dice, 0, stormDelay),
			pick(dice, http.StatusOK, http.StatusOK, http.StatusOK, http.StatusServiceUnavailable)
	}
}

// load starts jobs until the round's time is over. Some inputs are too long for a
// message (T4).
func (s *chaos) load() {
	dice, until := s.dice("load"), time.Now().Add(stormLoad)
	for n := 0; time.Now().Before(until); {
		for range stormBatch {
			s.startJob(fmt.Sprintf("order-%d%s", n, pick(dice, "", "", "", "", "", huge)))
			n++
		}
		world.Pause(s.t.Context(), world.Between(dice, 0, 900*time.Millisecond))
	}
}

// start starts a process. Those of one space need not be alike, and the smallest limits
// find the most (F16).
func (s *chaos) start(dice *rand.Rand) *world.Process {
	c := s.config()
	c.Stepwise, c.NoFold, c.NoLocal = dice.IntN(3) == 0, dice.IntN(3) == 0, dice.IntN(2) == 0 // modes mix (C11)
	c.NoEarly = dice.IntN(3) == 0
	c.StreamBytes, c.Collector = 1<<20, s.collector
	c.MaxBatch, c.Committers, c.Concurrency, c.HotBytes = pick(dice, 1, 1, 2, 7, 500), 1+dice.IntN(3), 2+dice.IntN(8),
		-dice.IntN(2)
	return startProcess(s.t, os.Args[0], c)
}

// chosen are the faults of a round. Every third round has all. The odd ones let
// NATS and the processes live, so that what is lost with a stream or a connection
// is found by those who lost it. The others have any, at least one.
func (s *chaos) chosen(dice *rand.Rand) (out []world.Trouble) {
	all := []world.Trouble{
		world.Every("kill", 300*time.Millisecond, 2500*time.Millisecond, s.storm.Kill),
		world.Every("stop", 500*time.Millisecond, 2*time.Second, s.storm.Stop),
		world.Every("term", 2*time.Second, 5*time.Second, s.term),
		world.Every("postgres", 3*time.Second, 7*time.Second, s.storm.RestartPostgres),
		world.Every("nats", 2*time.Second, 6*time.Second, s.storm.RestartNATS),
		world.Every("stream", 300*time.Millisecond, 1500*time.Millisecond, s.breakStreams),
	}
	all = append(all, s.quiet()...)
	set := 1 + dice.IntN(1<<len(all)-1)
	switch {
	case s.round%3 == 0:
		return all
	case s.round%2 == 1:
		set = 0b1111101110 // all but kill and nats
	}
	for i, f := range all {
		if set&(1<<i) != 0 {
			out = append(out, f)
		}
	}
	return out
}

// term has a process drain. Without its servers it may end with an error, but it must
// end (T10).
func (s *chaos) term(_ context.Context, dice *rand.Rand) {
	if p := s.storm.Victim(dice); p != nil {
		assert.NotErrorIs(s.t, p.Drain(patience), world.ErrHangs, "T10: %s", p.Log)
	}
}

// breakStreams takes some of the space's streams away, or their messages, or their
// consumers. NATS may be away just now; then there is nothing to break.
func (s *chaos) breakStreams(ctx context.Context, dice *rand.Rand) {
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
