package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev/soak"
	"github.com/quipu-journal/quipu/journal"
)

// raceTimes is how often each race is run.
var raceTimes = soak.Times(100, 1000)

// raceSpread is the width of the random delays on both sides of a race.
const raceSpread = 60 * time.Millisecond

// race runs many jobs of one flow in two worker processes, and for each what
// disturbs it, after a random delay; then every job must have ended and verify.
func race(t *testing.T, yaml string, spread time.Duration, input func() any, disturb func(ctx context.Context, rt *quipu.Runtime, job quipu.Job) error,
	check func(e *env, out []byte, err error),
) {
	t.Helper()
	e := newEnv(t, false)
	rt := e.open(e.config(nil)) // starts, signals and waits; the work is done elsewhere
	f := e.deploy(rt, yaml)
	for i := range 2 {
		startChild(t, childConfig{
			Postgres: e.dsn, NATS: e.nats.URL(), Space: e.space, Resend: quickResend, Lease: quickLease,
			Stepwise: i == 1, MaxBatch: 1 + 49*i,
		})
	}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(64)
	for i := range raceTimes {
		g.Go(func() error {
			job, err := rt.Start(ctx, f.Name(), fmt.Sprintf("race-%d", i), input())
			if err != nil {
				return err
			}
			time.Sleep(rand.N(spread + 1))
			if err := disturb(ctx, rt, job); err != nil {
				return err
			}
			bounded, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			out, err := rt.Wait(bounded, job)
			if bounded.Err() != nil {
				return fmt.Errorf("job %s is stranded", job.Key)
			}
			mu.Lock()
			defer mu.Unlock()
			check(e, out, err)
			return nil
		})
	}
	require.NoError(t, g.Wait())
	e.clean(rt)
}

// P15: timer and signal at the same moment: one is accepted, whichever.
func TestP15RaceSignalTimer(t *testing.T) {
	t.Parallel()
	won := map[string]int{}
	race(t, raceFlow2, raceSpread, func() any {
		return map[string]any{"for": (raceSpread/2 + rand.N(raceSpread)).String()}
	}, func(ctx context.Context, rt *quipu.Runtime, job quipu.Job) error {
		_, err := rt.Signal(ctx, "reviewed", job.Key, "signal")
		return err
	}, func(e *env, out []byte, err error) {
		require.NoError(e.t, err)
		won[string(out)]++
	})
	require.Equal(t, raceTimes, won[`{"by":"signal","got":"signal"}`]+won[`{"by":"timer","got":null}`], "%v", won)
	t.Logf("won: %v", won)
}

const raceFlow2 = `
flow: review
version: "1"
output: {by: "${ review.by }", got: "${ review.output }"}
activities:
  start:  {type: trigger}
  review: {type: hook, signal: reviewed, key: "${ job.id }", sleep: "${ start.output.for }"}
transitions: {start: [review]}
`

// P13, E13: a signal before, during and after the suspension is never lost.
func TestP13RaceSignalSuspension(t *testing.T) {
	t.Parallel()
	race(t, replaced(raceFlow2, `sleep: "${ start.output.for }"`, "within: 1h"), raceSpread, func() any { return nil },
		func(ctx context.Context, rt *quipu.Runtime, job quipu.Job) error {
			_, err := rt.Signal(ctx, "reviewed", job.Key, job.Key)
			return err
		}, func(e *env, out []byte, err error) {
			require.NoError(e.t, err)
			require.Contains(e.t, string(out), `"by":"signal","got":"race-`)
		})
}

// 1.11: two signals for one wait: one is consumed by it, the other is kept.
func TestRaceTwoSignals(t *testing.T) {
	t.Parallel()
	race(t, replaced(raceFlow2, `sleep: "${ start.output.for }"`, "within: 1h"), raceSpread, func() any { return nil },
		func(ctx context.Context, rt *quipu.Runtime, job quipu.Job) error {
			var g errgroup.Group
			for _, payload := range []string{"one", "two"} {
				g.Go(func() error {
					time.Sleep(rand.N(5 * time.Millisecond))
					_, err := rt.Signal(ctx, "reviewed", job.Key, payload)
					return err
				})
			}
			return g.Wait()
		}, func(e *env, out []byte, err error) {
			require.NoError(e.t, err)
			require.Contains(e.t, []string{`{"by":"signal","got":"one"}`, `{"by":"signal","got":"two"}`}, string(out))
		})
}

// C15: an interrupt and a response at the same moment: the job completes or is
// interrupted, never both.
func TestRaceInterruptResponse(t *testing.T) {
	t.Parallel()
	ended := map[journal.JobState]int{}
	race(t, `
flow: race
version: "1"
output: "${ d.output.n }"
activities:
  start: {type: trigger}
  a: {type: worker, topic: echo}
  b: {type: worker, topic: echo}
  c: {type: worker, topic: echo}
  d: {type: worker, topic: echo, input: {n: 1}}
transitions: {start: [a], a: [b], b: [c], c: [d]}
`, 0, func() any { return nil }, func(ctx context.Context, rt *quipu.Runtime, job quipu.Job) error {
		for seq := rand.Int64N(16); ; { // anywhere in its life, whatever the machine's speed
			view, err := rt.Job(ctx, job)
			if err != nil {
				return err
			}
			if view.State.Closed() || view.Head.Seq >= seq {
				break
			}
		}
		_, err := rt.Interrupt(ctx, job.Key)
		return err
	}, func(e *env, _ []byte, err error) {
		failed := &quipu.JobError{}
		switch {
		case err == nil:
			ended[journal.JobCompleted]++
		case errors.As(err, &failed):
			ended[failed.State]++
		default:
			require.NoError(e.t, err)
		}
	})
	require.Equal(t, raceTimes, ended[journal.JobCompleted]+ended[journal.JobInterrupted], "%v", ended)
	t.Logf("ended: %v", ended)
}
