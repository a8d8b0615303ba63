package quipu_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/workers"
)

// Middleware of a registry wraps each of its handlers, the first one outermost. It knows the
// call, and its result is the answer.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	seen := map[string]*devtest.Log{"plain": {}, "effect": {}, "function": {}} // by topic
	named := func(name string) func(workers.Handler) workers.Handler {
		return func(next workers.Handler) workers.Handler {
			return func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
				log := seen[workers.Info(ctx).Topic]
				fmt.Fprintln(log, name, "before")
				defer fmt.Fprintln(log, name, "behind")
				return next(ctx, in)
			}
		}
	}
	next := func(ctx context.Context, in int) (int, error) {
		fmt.Fprintln(seen[workers.Info(ctx).Topic], "runs")
		return in + 1, nil
	}
	reg := workers.New()
	workers.Handle(reg, "plain", next)
	reg.Use(named("outer"))
	workers.Handle(reg, "effect", next, workers.Class(effects.Idempotent))
	workers.HandleDurable(reg, "function", func(ctx context.Context, in int) (int, error) {
		n, _ := next(ctx, in)
		return n, workers.Sleep(ctx, "nap", time.Millisecond)
	})
	reg.Use(named("inner"), func(next workers.Handler) workers.Handler {
		return func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
			if string(in) == "13" {
				return nil, workers.Fail(403, "not this one")
			}
			return next(ctx, in)
		}
	})
	s := newSpaceOf(t, reg)
	const run = "outer before\ninner before\nruns\ninner behind\nouter behind\n"
	for topic, turns := range map[string]int{"plain": 1, "effect": 1, "function": 2} {
		out, err := quipu.CallAs[int](devtest.Context(t), s.Runtime, topic, topic, 1)
		require.NoError(t, err)
		require.Equal(t, 2, out)
		// A process that stood still for long runs a handler again (C9).
		require.Regexp(t, fmt.Sprintf("^(%s){%d}", run, turns), seen[topic].String())
	}
	_, err := quipu.CallAs[int](devtest.Context(t), s.Runtime, "plain", "refused", 13)
	var failed *quipu.JobError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 403, failed.Code)

	broken := workers.New()
	broken.Use(nil)
	require.ErrorContains(t, broken.Check(), "a middleware is nil")
	require.Equal(t, slog.Default(), quipu.Logger(context.Background()), "outside a job")
}
