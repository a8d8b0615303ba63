package durable

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/effects/effectstest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// Package workers tests what functions do and what survives a crash, with the calls that
// handlers make. These tests are for the engine alone.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var theRequest = journal.GUID{2}

type body = func(context.Context) ([]byte, error)

// bench is one request and its deliveries.
type bench struct {
	t     *testing.T
	store *effectstest.Store
	runs  int
}

func newBench(t *testing.T) *bench {
	t.Parallel()
	b := &bench{t: t, store: effectstest.New()}
	b.store.Put(theRequest, nil)
	return b
}

// deliver makes the next delivery, after a suspension.
func (b *bench) deliver() *Function {
	l := store.Lease{Request: theRequest, Turn: b.runs + 1, Holder: string(rune('a' + b.runs))}
	f := New(Config{Grace: time.Minute, Config: effects.Config{Store: b.store, Lease: l, Replay: b.runs > 0}})
	b.runs++
	require.NoError(b.t, f.Load(b.t.Context()))
	return f
}

// run runs fn in the next delivery and registers the waits.
func (b *bench) run(fn body) Ending {
	end := b.deliver().Run(b.t.Context(), fn)
	if end.Suspended {
		b.store.Suspend(theRequest, end.Pauses)
	}
	return end
}

func (b *bench) wake(name string) {
	require.True(b.t, b.store.Wake(theRequest, journal.PauseSleep, name, &journal.Response{Kind: journal.ResponseWake, By: journal.ByTimer}))
}

func sleep(ctx context.Context, name string) error {
	_, err := Wait(ctx, wire.Pause{Kind: journal.PauseSleep, Name: name, For: 1})
	return err
}

func TestE12AWaitEndsTheRunUntilItIsOver(t *testing.T) {
	b := newBench(t)
	ended := 0
	fn := func(ctx context.Context) ([]byte, error) {
		defer func() { ended++ }()
		n, err := effects.Do(ctx, "a", func(context.Context) (int, error) { return b.runs, nil }, effects.Idempotent)
		if err := errors.Join(err, sleep(ctx, "night")); err != nil {
			return nil, err
		}
		return []byte{byte('0' + n)}, nil
	}
	end := b.run(fn)
	require.True(t, end.Suspended)
	require.Equal(t, []wire.Pause{{Kind: journal.PauseSleep, Name: "night", Position: "2", For: 1}}, end.Pauses)
	require.Equal(t, 1, ended, "deferred calls ran")
	b.wake("night")
	end = b.run(fn)
	require.NoError(t, end.Err)
	require.Equal(t, "1", string(end.Result), "the effect of the first run")
	require.Equal(t, 2, ended)
}

func TestBranchesSuspendTogether(t *testing.T) {
	b := newBench(t)
	fn := func(ctx context.Context) ([]byte, error) {
		return nil, All(ctx, []func(context.Context){
			func(ctx context.Context) { _ = sleep(ctx, "x") },
			func(ctx context.Context) {
				_, _ = First(ctx, []func(context.Context){
					func(ctx context.Context) { _ = sleep(ctx, "y") },
					func(ctx context.Context) { _ = sleep(ctx, "z") },
				})
			},
		})
	}
	positions := func(end Ending) (out []string) {
		for _, p := range end.Pauses {
			out = append(out, p.Name+" "+p.Position)
		}
		return out
	}
	require.Equal(t, []string{"x 1.0.1", "y 1.1.1.0.1", "z 1.1.1.1.1"}, positions(b.run(fn)))
	b.wake("z")
	require.Equal(t, []string{"x 1.0.1"}, positions(b.run(fn)), "y has lost")
	b.wake("x")
	end := b.run(fn)
	require.NoError(t, end.Err)
	require.False(t, end.Suspended)
}

func TestE15TheFirstDifferenceIsTheVerdict(t *testing.T) {
	b := newBench(t)
	b.run(func(ctx context.Context) ([]byte, error) { return nil, sleep(ctx, "x") })
	b.wake("x")
	f := b.deliver()
	end := f.Run(t.Context(), func(ctx context.Context) ([]byte, error) { return nil, sleep(ctx, "y") })
	var differs *effects.NondeterminismError
	require.ErrorAs(t, end.Err, &differs)
	require.Equal(t, "1", differs.Position)
	require.Equal(t, differs, f.Session().Verdict())
	require.ErrorAs(t, f.Unasked(), &differs, "and x was not asked for")
}

func TestAFunctionThatIsGivenUpMakesNoFurtherCall(t *testing.T) {
	b := newBench(t)
	f := b.deliver()
	called := false
	end := f.Run(t.Context(), func(ctx context.Context) ([]byte, error) {
		_, err := effects.Do(ctx, "a", func(context.Context) (int, error) {
			f.Session().Abandon(context.Canceled)
			return 1, nil
		}, effects.Pure)
		called = true
		return nil, err
	})
	require.ErrorIs(t, end.Err, errHalted)
	require.False(t, called, "it ends where it comes back")
	require.Equal(t, store.EffectCompleted, b.store.Rows(theRequest)[0].State, "what was done is recorded")
}

func TestAContextOfAnotherHandlerIsRefused(t *testing.T) {
	t.Parallel()
	ctx := effects.With(t.Context(), New(Config{}).Session())
	require.ErrorContains(t, sleep(ctx, "x"), "its context is not one of the function's")
	ctx = effects.With(t.Context(), effects.NewSession(effects.Config{}))
	require.ErrorContains(t, sleep(ctx, "x"), "workers.HandleDurable")
}
