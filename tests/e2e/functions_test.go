package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// function runs one job of a flow with one durable function.
func function[Out any](e *env, fn func(context.Context, order) (Out, error)) (*quipu.Runtime, quipu.Job) {
	e.t.Helper()
	reg := workers.New()
	workers.HandleDurable(reg, "fn", fn)
	workers.Handle(reg, "double", func(_ context.Context, in map[string]int) (map[string]int, error) {
		if in["n"] < 0 {
			return nil, workers.Fail(422, "negative")
		}
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
		v, err := rt.Job(e.t.Context(), job)
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
// side by side and one after the other.
func TestE12Function(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		r := newReceiver(t)
		rt, job := function(e, func(ctx context.Context, in order) (map[string]any, error) {
			_, err := effects.Do(ctx, "charge", func(ctx context.Context) (map[string]string, error) {
				return call(ctx, r.URL, effects.Key(ctx), "charge "+in.ID)
			}, effects.Idempotent)
			if err != nil {
				return nil, err
			}
			if err := workers.Sleep(ctx, "cool-off", 300*time.Millisecond); err != nil {
				return nil, err
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
		require.Equal(t, 1, r.appliedOnce(t, map[string]bool{"charge order-1": true}), "replays do not call")
		e.clean(rt)
	})
}

// E12: what a child fails with reaches the function, as its own error.
func TestE12ChildFails(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		rt, job := function(e, func(ctx context.Context, _ order) (map[string]any, error) {
			_, err := workers.Child[int](ctx, "a", "double", map[string]int{"n": -1})
			var failed *workers.ChildError
			if !errors.As(err, &failed) {
				return nil, fmt.Errorf("not a child's error: %w", err)
			}
			_, err = workers.Child[int](ctx, "none", "nowhere", nil)
			return map[string]any{"receipt": failed.Code}, err
		})
		_, err := e.wait(rt, job)
		var failed *quipu.JobError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 404, failed.Code, "%v", err)
		e.clean(rt)
	})
}

// P14: two sleeps in one function are two timers.
func TestP14TwoSleeps(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		const first, second = 400 * time.Millisecond, 300 * time.Millisecond
		began := time.Now()
		rt, job := function(e, func(ctx context.Context, in order) (map[string]string, error) {
			if err := workers.Sleep(ctx, "one", first); err != nil {
				return nil, err
			}
			return map[string]string{"receipt": in.ID}, workers.Sleep(ctx, "two", second)
		})
		_, err := e.wait(rt, job)
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(began), first+second)
		wakes := 0
		for _, x := range e.entries(rt, job) {
			if x.Response != nil && x.Response.Kind == journal.ResponseWake {
				wakes++
			}
		}
		require.GreaterOrEqual(t, wakes, 2)
		e.clean(rt)
	})
}

// P18: an effect of a function with an empty result, replayed over and over.
func TestP18EmptyResultInAFunction(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		var calls atomic.Int64
		rt, job := function(e, func(ctx context.Context, in order) (map[string]string, error) {
			for i := range 3 {
				_, err := effects.Do(ctx, "touch", func(context.Context) (any, error) {
					calls.Add(1)
					return nil, nil //nolint:nilnil // the empty result is the point
				}, effects.WithKey(fmt.Sprint("touch-", i)))
				if err != nil {
					return nil, err
				}
				if err := workers.Sleep(ctx, fmt.Sprint("nap-", i), time.Millisecond); err != nil {
					return nil, err
				}
			}
			return map[string]string{"receipt": in.ID}, nil
		})
		_, err := e.wait(rt, job)
		require.NoError(t, err)
		require.Equal(t, int64(3), calls.Load())
		e.clean(rt)
	})
}

// P31: a live Guarded call of a function that outlives its ack wait and its lease.
func TestP31LiveGuardedCallInAFunction(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		var calls atomic.Int64
		rt, job := function(e, func(ctx context.Context, in order) (map[string]string, error) {
			if err := workers.Sleep(ctx, "nap", time.Millisecond); err != nil {
				return nil, err
			}
			return effects.Do(ctx, "slow", func(ctx context.Context) (map[string]string, error) {
				calls.Add(1)
				select {
				case <-time.After(2 * quickLease): // the call itself
				case <-ctx.Done():
				}
				return map[string]string{"receipt": in.ID}, ctx.Err()
			})
		})
		_, err := e.wait(rt, job)
		require.NoError(t, err)
		require.Equal(t, int64(1), calls.Load())
		letters, err := rt.DeadLetters(t.Context(), true, 10)
		require.NoError(t, err)
		require.Empty(t, letters)
		e.clean(rt)
	})
}

// E6: a result of 1 MiB is kept, one byte more is a clear error, in an effect of a
// function and as its own result.
func TestE6LimitsInAFunction(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		text := func(n int) string { return strings.Repeat("x", n-2) } // two quotation marks
		rt, job := function(e, func(ctx context.Context, _ order) (string, error) {
			whole, err := effects.Do(ctx, "whole", func(context.Context) (string, error) { return text(1 << 20), nil }, effects.Idempotent)
			if err != nil {
				return "", err
			}
			_, err = effects.Do(ctx, "over", func(context.Context) (string, error) { return text(1<<20 + 1), nil }, effects.Idempotent)
			var recorded *effects.RecordedError
			if !errors.As(err, &recorded) || recorded.Failure.Class != "result_too_large" {
				return "", fmt.Errorf("not a limit: %w", err)
			}
			if err := workers.Sleep(ctx, "nap", time.Millisecond); err != nil {
				return "", err
			}
			return whole + "x", nil
		})
		_, err := e.wait(rt, job)
		require.ErrorContains(t, err, fmt.Sprint(1<<20))
		e.clean(rt)
	})
}

// E15: code that takes another path than what is recorded is reported with the
// first difference; the job is parked, and goes on with the code that it knows.
func TestE15ChangedFunctionParks(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		var changed atomic.Bool
		var calls atomic.Int64
		touch := func(ctx context.Context, name string) error {
			_, err := effects.Do(ctx, name, func(context.Context) (any, error) {
				calls.Add(1)
				return name, nil
			}, effects.Idempotent)
			return err
		}
		rt, job := function(e, func(ctx context.Context, in order) (map[string]string, error) {
			name := "reserve"
			if changed.Load() {
				name = "book"
			}
			if err := errors.Join(touch(ctx, name)); err != nil {
				return nil, err
			}
			if _, err := workers.Await[any](ctx, "go", 0); err != nil {
				return nil, err
			}
			return map[string]string{"receipt": in.ID}, touch(ctx, "ship")
		})
		e.suspended(rt, job, 1)
		changed.Store(true)
		_, err := rt.Signal(t.Context(), "go", job.Key, nil)
		require.NoError(t, err)
		letter := e.letter(rt, job)
		require.Contains(t, letter.Letter.Message, "reserve")
		require.Contains(t, letter.Letter.Message, "book")
		require.Equal(t, int64(1), calls.Load(), "nothing is called on the wrong path")
		changed.Store(false)
		require.NoError(t, rt.Retry(t.Context(), letter.ID, "ann", "the old code is back"))
		_, err = e.wait(rt, job)
		require.NoError(t, err)
		require.Equal(t, int64(2), calls.Load())
		e.clean(rt)
	})
}

// 3.5: Version under jobs that began before it: they keep the old path, new ones
// take the new one, in one process and over many replays.
func TestVersionUnderRunningJobs(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		old := func(ctx context.Context, in order) (map[string]string, error) {
			_, err := effects.Do(ctx, "pay", func(context.Context) (string, error) { return "old", nil }, effects.Idempotent)
			if err == nil {
				_, err = workers.Await[any](ctx, "go", 0)
			}
			return map[string]string{"receipt": "old " + in.ID}, err
		}
		next := func(ctx context.Context, in order) (map[string]string, error) {
			v, err := workers.Version(ctx, "fees", 1)
			if err != nil {
				return nil, err
			}
			receipt := "old " + in.ID
			if v >= 1 {
				if _, err := effects.Do(ctx, "fee", func(context.Context) (string, error) { return "fee", nil }, effects.Idempotent); err != nil {
					return nil, err
				}
				receipt = "new " + in.ID
			}
			_, err = effects.Do(ctx, "pay", func(context.Context) (string, error) { return "pay", nil }, effects.Idempotent)
			if err == nil {
				_, err = workers.Await[any](ctx, "go", 0)
			}
			return map[string]string{"receipt": receipt}, err
		}
		run := func(fn func(context.Context, order) (map[string]string, error)) (*quipu.Runtime, func()) {
			reg := workers.New()
			workers.HandleDurable(reg, "fn", fn)
			return e.run(reg)
		}
		rt, stop := run(old)
		e.deploy(rt, oneStep("fn"))
		before := e.start(rt, "one", "before", order{ID: "a"})
		e.suspended(rt, before, 1)
		stop()
		rt, _ = run(next)
		after := e.start(rt, "one", "after", order{ID: "b"})
		e.suspended(rt, after, 1)
		for job, want := range map[quipu.Job]string{before: "old a", after: "new b"} {
			_, err := rt.Signal(t.Context(), "go", job.Key, nil)
			require.NoError(t, err)
			out, err := e.wait(rt, job)
			require.NoError(t, err)
			require.JSONEq(t, `{"receipt":"`+want+`"}`, string(out))
		}
		e.clean(rt)
	})
}
