package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

const hello = `
flow: hello
version: "1"
activities: {start: {type: trigger}}
`

// E14: a call is a job of one activity on the topic. Its key is the caller's, its output or error the
// handler's. Calls with one key are one job, even if they run at once.
func TestE14Call(t *testing.T) {
	t.Parallel()
	s := newSpace(t, hello)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			out, err := s.Call(ctx, "echo", "k", json.RawMessage(`{"n": "<1>"}`))
			if err != nil || string(out) != `{"n":"<1>"}` {
				t.Errorf("%s, %v", out, err)
			}
		})
	}
	wg.Wait()
	counts, err := below.Of(s.Runtime).Counts(ctx)
	require.NoError(t, err)
	require.Equal(t, map[journal.JobState]int64{journal.JobCompleted: 1}, counts)
	v := s.info(quipu.Job{Key: "k"})
	require.Equal(t, []string{flow.CallName, "echo"}, []string{v.Flow, v.Version})
	_, err = s.Call(ctx, "fail", "f", map[string]any{"code": 409, "message": "declined"})
	var failed *quipu.JobError
	require.ErrorAs(t, err, &failed)
	_, again := s.Call(ctx, "fail", "f", map[string]any{"code": 409, "message": "declined"})
	require.Equal(t, err, again, "it is the record")

	s.begin("hello", "other", json.RawMessage(`{}`))
	for want, call := range map[string]struct {
		topic, key string
		input      any
	}{
		"has a job with another input":                          {"echo", "k", 2},
		`the key "k" has a job of flow quipu_call version echo`: {"fail", "k", json.RawMessage(`{"n":"<1>"}`)},
		`"other" has a job of flow hello version 1`:             {"echo", "other", json.RawMessage(`{}`)},
	} {
		_, err := s.Call(ctx, call.topic, call.key, call.input)
		require.ErrorContains(t, err, want)
		var taken *quipu.ConflictError
		require.ErrorAs(t, err, &taken)
		require.False(t, taken.SameFlow && taken.SameInput)
	}
}

// A bad call begins nothing. A built-in flow cannot be deployed, nor started without its topic.
func TestCallIsRefused(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	ctx := t.Context()
	for _, topic := range []string{"", "Echo", "a b", strings.Repeat("t", flow.MaxTopic+1)} {
		_, err := s.Call(ctx, topic, "k", nil)
		require.ErrorIs(t, err, quipu.ErrInput)
	}
	_, err := s.Call(ctx, "echo", "", nil)
	require.ErrorIs(t, err, quipu.ErrKey)
	_, err = s.Call(ctx, "echo", "k", json.RawMessage(`{`))
	require.ErrorIs(t, err, quipu.ErrInput)
	f, err := flow.Call("echo")
	require.NoError(t, err)
	require.ErrorAs(t, s.Deploy(ctx, f), new(flow.Faults))
	_, err = s.Start(ctx, flow.CallName, "k", nil)
	require.ErrorIs(t, err, quipu.ErrNotFound)
	require.ErrorContains(t, err, "its version is the topic")
	_, err = s.Find(ctx, "k")
	require.ErrorIs(t, err, quipu.ErrNotFound)
}

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
