package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/workers"
)

// E14: a function that is called directly runs plainly.
func TestE14AFunctionRunsPlainly(t *testing.T) {
	t.Parallel()
	fn := func(ctx context.Context, in int) (string, error) {
		var errs [9]error
		var a, i, version int
		var n uint64
		var id string
		var vs []string
		var began, ended time.Time
		a, errs[0] = effects.Do(ctx, "a", func(context.Context) (int, error) { return in + 1, nil })
		began, errs[1] = workers.Now(ctx)
		errs[2] = workers.Sleep(ctx, "rest", time.Hour)
		ended, errs[3] = workers.Now(ctx)
		vs, errs[4] = workers.All(ctx,
			func(ctx context.Context) (string, error) {
				return workers.Await[string](ctx, "go", time.Minute, workers.SignalKey("k"))
			},
			func(ctx context.Context) (string, error) {
				v, err := workers.Child[map[string]int](ctx, "kid", "count", map[string]int{"n": a})
				return fmt.Sprint(v["n"]), err
			},
		)
		i, _, errs[5] = workers.First(ctx, branchOf(rest("long"), nil), branchOf(nothing, nil))
		version, errs[6] = workers.Version(ctx, "c", 3)
		id, errs[7] = workers.UUID(ctx)
		n, errs[8] = workers.Rand(ctx)
		return fmt.Sprint(a, ended.Sub(began), vs, i, version, len(id), n > 0), errors.Join(errs[:]...)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx := durable.WithSignals(t.Context(), func(_ context.Context, topic, key string) (any, error) {
			return topic + key, nil
		})
		ctx = durable.WithChildren(ctx, func(_ context.Context, name, flow string, input json.RawMessage) (any, error) {
			return input, nil
		})
		out, err := fn(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, "2 1h0m0s [gok 2] 1 3 36 true", out)
	})
}

func TestE14WhatAPlainFunctionIsNotGiven(t *testing.T) {
	t.Parallel()
	_, err := workers.Await[int](t.Context(), "go", 0)
	require.ErrorContains(t, err, "quiputest.WithSignals")
	_, err = workers.Child[int](t.Context(), "kid", "f", 1)
	require.ErrorContains(t, err, "quiputest.WithChildren")
	_, _, err = workers.First[int](t.Context())
	require.ErrorIs(t, err, effects.ErrUsage)
	synctest.Test(t, func(t *testing.T) {
		ctx := durable.WithSignals(t.Context(), func(ctx context.Context, _, _ string) (any, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		_, err := workers.Await[int](ctx, "go", time.Second)
		require.ErrorIs(t, err, workers.ErrAwaitTimeout)
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		_, err = workers.Await[int](ctx, "go", time.Second)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, workers.Sleep(ctx, "x", time.Hour), context.Canceled)
	})
}

func TestE14PlainBranchesPanicInTheirCaller(t *testing.T) {
	t.Parallel()
	boom := func(context.Context) (int, error) { panic("boom") }
	fine := func(context.Context) (int, error) { return 1, nil }
	for _, run := range []func(){
		func() { _, _ = workers.All(t.Context(), fine, boom) },
		func() { _, _, _ = workers.First(t.Context(), boom) },
	} {
		func() {
			defer func() {
				failed, ok := recover().(*durable.PanicError)
				require.True(t, ok)
				require.Equal(t, "boom", failed.Text)
				require.Contains(t, string(failed.Stack), "plain_test.go")
			}()
			run()
		}()
	}
	leave := func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }
	require.PanicsWithError(t, "panic: "+durable.ErrGoexit.Error(), func() { _, _ = workers.All(t.Context(), fine, leave) })
	told := make(chan error, 1)
	i, v, err := workers.First(t.Context(), func(ctx context.Context) (int, error) {
		<-ctx.Done()
		told <- context.Cause(ctx)
		return 0, nil
	}, fine)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{i, v})
	require.ErrorIs(t, <-told, durable.ErrLost)
}

func TestE14PlainCompensations(t *testing.T) {
	t.Parallel()
	var o outside
	failed, stuck := errors.New("no car"), errors.New("no line")
	fn := func(ctx context.Context, err error) (int, error) {
		_ = undoable("a")(ctx, &o)
		_ = workers.Compensate(ctx, "b", func(context.Context) error { return stuck })
		_ = undoable("c")(ctx, &o)
		return 7, err
	}
	out, err := plainly(t.Context(), fn, nil)
	require.NoError(t, err)
	require.Equal(t, 7, out)
	_, err = fn(t.Context(), failed)
	require.ErrorIs(t, err, failed)
	require.Empty(t, o.names, "called directly, it is a function like any other")
	_, err = plainly(t.Context(), fn, failed)
	require.ErrorIs(t, err, failed)
	require.ErrorIs(t, err, stuck)
	require.Equal(t, []string{"undo c", "undo a"}, o.names)
}

// plainly calls a function as quiputest.Plain does.
func plainly[In, Out any](ctx context.Context, fn func(context.Context, In) (Out, error), in In) (Out, error) {
	ctx, undo := durable.Plain(ctx)
	out, err := fn(ctx, in)
	if err != nil {
		err = undo(err)
	}
	return out, err
}
