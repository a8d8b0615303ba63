package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
	"github.com/quipu-journal/quipu/internal/testkit/world"
	"github.com/quipu-journal/quipu/journal"
)

// raceTimes is how often each race is run.
var raceTimes = soak.Times(20, 1000)

// raceSpread is the width of the random delays on both sides of a race.
const raceSpread = 60 * time.Millisecond

// contest is a job that meets what disturbs it after a random delay.
type contest struct {
	flow    string
	input   func() any
	disturb func(ctx context.Context, rt *quipu.Runtime, key string) error
	ends    []string // in one of these ways: the output, or the state of a job that fails
}

// The flow of a hook, and of a durable function, that wait for a signal.
const (
	hookRace = `
flow: NAME
version: "1"
output: {by: "${ review.by }", got: "${ review.output }"}
activities:
  start:  {type: trigger}
  review: {type: hook, signal: reviewed, key: "${ job.id }", sleep: "${ start.output.for }"}
transitions: {start: [review]}
`
	functionRace = `
flow: NAME
version: "1"
output: {by: "${ review.output.by }", got: "${ review.output.got }"}
activities:
  start:  {type: trigger}
  review: {type: worker, topic: reviewed, input: {for: "${ start.output.for }"}}
transitions: {start: [review]}
`
)

func signalled(payload string) string { return `{"by":"signal","got":"` + payload + `"}` }

const timedOut = `{"by":"timer","got":null}`

func patient() any { return map[string]any{"for": "1h"} }

func hasty() any { return map[string]any{"for": (raceSpread/2 + rand.N(raceSpread)).String()} }

func disturbBySignal(ctx context.Context, rt *quipu.Runtime, key string) error {
	time.Sleep(rand.N(raceSpread + 1))
	_, err := rt.Signal(ctx, "reviewed", key, "one")
	return err
}

// disturbByTwo sends two signals at once for one wait: the other one is kept.
func disturbByTwo(ctx context.Context, rt *quipu.Runtime, key string) error {
	time.Sleep(rand.N(raceSpread + 1))
	var g errgroup.Group
	for _, payload := range []string{"one", "two"} {
		g.Go(func() error {
			time.Sleep(rand.N(5 * time.Millisecond))
			_, err := rt.Signal(ctx, "reviewed", key, payload)
			return err
		})
	}
	return g.Wait()
}

// disturbByInterrupt interrupts a job anywhere in its life, whatever the machine's
// speed.
func disturbByInterrupt(ctx context.Context, rt *quipu.Runtime, key string) error {
	job, err := rt.Find(ctx, key)
	for seq := rand.Int64N(16); err == nil; {
		view, bad := below.Of(rt).Job(ctx, job.ID)
		if bad != nil || view.State.Closed() || view.Head.Seq >= seq {
			err = bad
			break
		}
	}
	if err == nil {
		_, err = rt.Interrupt(ctx, quipu.Job{Key: key})
	}
	return err
}

// contests are by the names of their flows.
var contests = map[string]contest{
	// P13, E13: before, during and after the suspension.
	"hook_signal":     {hookRace, patient, disturbBySignal, []string{signalled("one")}},
	"function_signal": {functionRace, patient, disturbBySignal, []string{signalled("one")}},
	// P15: at the same moment: one is accepted, whichever.
	"hook_timer":     {hookRace, hasty, disturbBySignal, []string{signalled("one"), timedOut}},
	"function_timer": {functionRace, hasty, disturbBySignal, []string{signalled("one"), timedOut}},
	// 1.11: one is consumed, the other is kept.
	"two_signals": {hookRace, patient, disturbByTwo, []string{signalled("one"), signalled("two")}},
	// C15: completed or interrupted, never both.
	"interrupt": {`
flow: NAME
version: "1"
output: "${ d.output.n }"
activities:
  start: {type: trigger}
  a: {type: worker, topic: echo}
  b: {type: worker, topic: echo}
  c: {type: worker, topic: echo}
  d: {type: worker, topic: echo, input: {n: 1}}
transitions: {start: [a], a: [b], b: [c], c: [d]}
`, func() any { return nil }, disturbByInterrupt, []string{"1", string(journal.JobInterrupted)}},
}

// P13, P15, E13, C15: many jobs in two worker processes, one of them stepwise, and for
// each what disturbs it: it ends in a way that it may, and verifies.
func TestP13P15Races(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	rt := e.client() // starts, signals and waits; the work is done elsewhere
	for name := range contests {
		e.Deploy(rt, replaced(contests[name].flow, "NAME", name))
	}
	for i := range 2 {
		c := e.child(&world.Outside{Server: &httptest.Server{}})
		c.Stepwise, c.MaxBatch = i == 1, 1+49*i
		startChild(t, c)
	}
	var mu sync.Mutex
	won := map[string]int{}
	bounded, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	g, ctx := errgroup.WithContext(bounded)
	g.SetLimit(64)
	for i := range raceTimes {
		for name, c := range contests {
			g.Go(func() error {
				how, err := c.run(ctx, rt, name, fmt.Sprintf("%s-%d", name, i))
				mu.Lock()
				defer mu.Unlock()
				won[name+" "+how]++
				return err
			})
		}
	}
	require.NoError(t, g.Wait())
	t.Logf("won: %v", won)
	for name, c := range contests {
		all := 0
		for _, end := range c.ends {
			all += won[name+" "+end]
		}
		require.Equal(t, raceTimes, all, "%s: %v", name, won)
	}
	e.Verify()
}

// run starts a job, disturbs it and says how it ended.
func (c *contest) run(ctx context.Context, rt *quipu.Runtime, flow, key string) (how string, err error) {
	job, err := rt.Start(ctx, flow, key, c.input())
	if err != nil {
		return "", err
	}
	if err := c.disturb(ctx, rt, key); err != nil {
		return "", err
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := rt.Wait(bounded, job)
	if bounded.Err() != nil {
		return "", fmt.Errorf("job %s is stranded", key)
	}
	if failed := (*quipu.JobError)(nil); errors.As(err, &failed) {
		return string(failed.State), nil
	}
	return string(out), err
}
