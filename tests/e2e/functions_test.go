package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/tests/faults/play"
	"github.com/quipu-journal/quipu/tests/rig"
	"github.com/quipu-journal/quipu/workers"
)

// function runs one job of a flow with one durable function.
func function[Out any](e *env, fn func(context.Context, order) (Out, error)) (*quipu.Runtime, quipu.Job) {
	e.t.Helper()
	reg := workers.New()
	workers.HandleDurable(reg, "fn", fn)
	workers.Handle(reg, "double", func(_ context.Context, in map[string]int) (map[string]int, error) {
		return map[string]int{"n": 2 * in["n"]}, nil
	})
	rt, _ := e.run(reg)
	e.deploy(rt, doubleFlow)
	e.deploy(rt, oneStep("fn"))
	return rt, e.start(rt, "one", "order-1", order{ID: "order-1"})
}

const doubleFlow = `
flow: double
version: "1"
output: "${ twice.output.n }"
activities:
  start:  {type: trigger}
  twice:  {type: worker, topic: double, input: {n: "${ start.output.n }"}}
transitions: {start: [twice]}
`

// suspended waits until the job's function waits for so many things.
func (e *env) suspended(rt *quipu.Runtime, job quipu.Job, pauses int) {
	e.t.Helper()
	e.eventually(fmt.Sprintf("a suspension on %d pauses", pauses), func() bool {
		v, err := below.Of(rt).Job(e.t.Context(), job.ID)
		if err != nil {
			return false
		}
		for i := range v.Rows {
			if r := &v.Rows[i]; r.Kind == journal.MessageRequest && len(r.Pauses) == pauses && r.NextAt == 0 && r.Held == "" {
				return true
			}
		}
		return false
	})
}

// E12: a function that calls outside, sleeps, waits for a signal and for a child,
// side by side and one after the other. P14: its two sleeps are two timers.
func TestE12Function(t *testing.T) {
	inAMode(t, func(t *testing.T, e *env) {
		const nap = 200 * time.Millisecond
		r := rig.NewOutside(t)
		began := time.Now()
		rt, job := function(e, func(ctx context.Context, in order) (map[string]any, error) {
			_, err := effects.Do(ctx, "charge", func(ctx context.Context) (map[string]string, error) {
				return play.Call(ctx, r.URL, effects.Key(ctx), "charge "+in.ID)
			}, effects.Idempotent)
			if err != nil {
				return nil, err
			}
			for _, name := range []string{"cool-off", "more"} {
				if err := workers.Sleep(ctx, name, nap); err != nil {
					return nil, err
				}
			}
			children, err := workers.All(ctx,
				func(ctx context.Context) (int, error) {
					return workers.Child[int](ctx, "a", "double", map[string]int{"n": 3})
				},
				func(ctx context.Context) (int, error) {
					return workers.Child[int](ctx, "b", "double", map[string]int{"n": 4})
				},
			)
			if err != nil {
				return nil, err
			}
			who, err := workers.Await[string](ctx, "order.reviewed", time.Hour)
			if err != nil {
				return nil, err
			}
			id, err := workers.UUID(ctx)
			return map[string]any{"receipt": fmt.Sprint(who, " ", children), "id": id}, err
		})
		e.suspended(rt, job, 1)
		_, err := rt.Signal(t.Context(), "order.reviewed", job.Key, "ann")
		require.NoError(t, err)
		out, err := e.wait(rt, job)
		require.NoError(t, err)
		require.JSONEq(t, `{"receipt":"ann [6 8]"}`, string(out))
		require.GreaterOrEqual(t, time.Since(began), 2*nap)
		calls, _ := r.AskedFor("charge order-1")
		require.Equal(t, 1, calls, "replays do not call")
		e.clean(rt)
	})
}
