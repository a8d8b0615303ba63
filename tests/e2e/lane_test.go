package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
	"github.com/quipu-journal/quipu/workers"
)

const threeSteps = `
flow: three
version: "1"
activities:
  start: {type: trigger}
  a: {type: worker, topic: book}
  b: {type: worker, topic: book}
  c: {type: worker, topic: book}
transitions: {start: [a], a: [b], b: [c]}
`

// T9, W6, W7: two engines share one lane for a while, each with handlers that record effects. One keeps
// states and hands requests over in memory, the other does neither, so both meet the other's jobs.
// Every job ends, each of its effects has one key, and its journal verifies.
func TestT9TwoEnginesOnOneLane(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	var mu sync.Mutex
	booked := map[string]int{} // by key: calls
	engine := func(e *env, name string, hot int) *quipu.Runtime {
		reg := workers.New()
		workers.Handle(reg, "book", func(ctx context.Context, _ any) (string, error) {
			return effects.Do(ctx, "book", func(ctx context.Context) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				booked[effects.Key(ctx)]++
				return "booked", nil
			}, effects.Idempotent)
		})
		rt, _ := e.run(reg, func(c *quipu.Config) { c.Lanes, c.Name, c.HotBytes = 1, name, hot })
		return rt
	}
	cold := *e
	cold.noLocal = true
	engines := []*quipu.Runtime{engine(e, "warm", 0), engine(&cold, "cold", -1)}
	e.Deploy(engines[0], threeSteps)
	jobs := make([]int, 8)
	end := time.Now().Add(time.Duration(soak.Times(2, 60)) * time.Second)
	bounded, cancel := context.WithDeadline(t.Context(), end.Add(patience))
	defer cancel()
	g, ctx := errgroup.WithContext(bounded)
	for caller := range jobs {
		rt := engines[caller%2]
		g.Go(func() error {
			for ; time.Now().Before(end); jobs[caller]++ {
				job, err := rt.Start(ctx, "three", fmt.Sprint(caller, "-", jobs[caller]), nil)
				if err == nil {
					_, err = rt.Wait(ctx, job)
				}
				if err != nil {
					return fmt.Errorf("job %d-%d: %w", caller, jobs[caller], err)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	all := 0
	for _, n := range jobs {
		require.Positive(t, n)
		all += n
	}
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, booked, 3*all)
	e.Verify()
	db := e.connect()
	by := func(holder string) int { return e.count(db, "quipu_shop.effects WHERE holder LIKE $1", holder) }
	t.Logf("%d jobs; effects of requests from NATS, and from memory: warm %d, %d, cold %d, %d", all, by("warm%#%"), by("warm%~%"), by("cold%#%"), by("cold%~%"))
	require.Equal(t, 3*all, by("%"))
	require.Zero(t, by("cold%~%"), "it hands nothing over")
	require.Equal(t, e.logins == nil, by("warm%~%") > 0, "nor does a process without an engine")
}
