package quipu_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

// Middleware of a registry wraps each of its handlers, the first one outermost. It knows the
// call, and its result is the answer.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	note := func(ctx context.Context, what string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, workers.Info(ctx).Topic+" "+what)
	}
	named := func(name string) func(workers.Handler) workers.Handler {
		return func(next workers.Handler) workers.Handler {
			return func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
				note(ctx, name+" before")
				defer note(ctx, name+" behind")
				return next(ctx, in)
			}
		}
	}
	reg := workers.New()
	workers.Handle(reg, "plain", func(ctx context.Context, in int) (int, error) { note(ctx, "runs"); return in + 1, nil })
	reg.Use(named("outer"))
	workers.Handle(reg, "effect", func(ctx context.Context, in int) (int, error) { note(ctx, "runs"); return in + 1, nil }, workers.Class(effects.Idempotent))
	workers.HandleDurable(reg, "function", func(ctx context.Context, in int) (int, error) {
		note(ctx, "runs")
		return in + 1, workers.Sleep(ctx, "nap", time.Millisecond)
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
	turns := map[string]int{"plain": 1, "effect": 1, "function": 2}
	for topic, n := range turns {
		out, err := quipu.CallAs[int](t.Context(), s.Runtime, topic, topic, 1)
		require.NoError(t, err)
		require.Equal(t, 2, out)
		mu.Lock()
		var want []string
		for range n {
			want = append(want, topic+" outer before", topic+" inner before", topic+" runs", topic+" inner behind", topic+" outer behind")
		}
		require.Equal(t, want, seen)
		seen = nil
		mu.Unlock()
	}
	_, err := quipu.CallAs[int](t.Context(), s.Runtime, "plain", "refused", 13)
	var failed *quipu.JobError
	require.True(t, errors.As(err, &failed), "%v", err)
	require.Equal(t, 403, failed.Code)

	broken := workers.New()
	broken.Use(nil)
	require.ErrorContains(t, broken.Check(), "a middleware is nil")
	require.Equal(t, slog.Default(), quipu.Logger(context.Background()), "outside a job")
}
