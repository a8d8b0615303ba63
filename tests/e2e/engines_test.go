package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev/soak"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

// crossing is a job whose messages come to either engine: two calls outside, and a
// signal that the other one's caller sends.
const crossing = `
flow: crossing
version: "1"
output: {first: "${ first.output }", by: "${ wait.by }", second: "${ second.output }"}
activities:
  start:  {type: trigger}
  first:  {type: worker, topic: call, input: {id: "${ start.output.id }", n: 1}}
  wait:   {type: hook, signal: go, key: "${ start.output.id }", sleep: 1m}
  second: {type: worker, topic: call, input: {id: "${ start.output.id }", n: 2}}
transitions: {start: [first], first: [wait], wait: [second]}
`

// W6, W7, C3: two engines on one lane, with workers that record effects. Their hot
// states, local hand-over and commits cross all the time; each call is made once, since
// nothing fails, and every journal is proved. A minute in a soak.
func TestTwoEnginesOnOneLane(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	var calls sync.Map // what: *atomic.Int64
	engine := func() *quipu.Runtime {
		reg := workers.New()
		workers.Handle(reg, "call", func(ctx context.Context, in struct {
			ID string
			N  int
		},
		) (string, error) {
			return effects.Do(ctx, "call", func(context.Context) (string, error) {
				what := fmt.Sprint(in.ID, " ", in.N)
				n, _ := calls.LoadOrStore(what, new(atomic.Int64))
				n.(*atomic.Int64).Add(1)
				return what, nil
			}, effects.Idempotent)
		})
		rt, _ := e.run(reg, func(c *quipu.Config) { c.Lanes, c.Lease, c.AckWait, c.Resend = 1, 0, 0, 0 })
		return rt
	}
	a, b := engine(), engine()
	e.deploy(a, crossing)
	until := time.Now().Add(time.Duration(soak.Times(1, 60)) * time.Second)
	g, ctx := errgroup.WithContext(t.Context())
	var jobs atomic.Int64
	for _, pair := range [][2]*quipu.Runtime{{a, b}, {b, a}} {
		for range 8 {
			g.Go(func() error {
				for time.Now().Before(until) {
					key := fmt.Sprintf("job-%d", jobs.Add(1))
					if err := cross(ctx, pair[0], pair[1], key); err != nil {
						return fmt.Errorf("%s: %w", key, err)
					}
				}
				return nil
			})
		}
	}
	require.NoError(t, g.Wait())
	for n := range jobs.Load() {
		for _, call := range []int{1, 2} {
			what := fmt.Sprintf("job-%d %d", n+1, call)
			made, ok := calls.Load(what)
			require.True(t, ok, what)
			require.EqualValues(t, 1, made.(*atomic.Int64).Load(), what)
		}
	}
	t.Logf("%d jobs", jobs.Load())
	e.clean(a)
}

// cross runs a job with one runtime, and sends its signal with the other.
func cross(ctx context.Context, own, other *quipu.Runtime, key string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	job, err := own.Start(ctx, "crossing", key, map[string]string{"id": key})
	if err != nil {
		return err
	}
	if _, err := other.Signal(ctx, "go", key, nil); err != nil {
		return err
	}
	out, err := own.Wait(ctx, job)
	if want := fmt.Sprintf(`{"by":"signal","first":"%s 1","second":"%s 2"}`, key, key); err == nil && string(out) != want {
		err = fmt.Errorf("its output is %s, not %s", out, want)
	}
	return err
}
