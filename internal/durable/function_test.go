package durable

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/effectstest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// Package workers tests what functions do and what survives a crash, with the calls that
// handlers make. These tests are for the engine alone.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	theJob     = journal.JobID{1}
	theRequest = journal.GUID{2}
)

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
	b.store.Put(theJob, theRequest, nil)
	return b
}

// deliver makes the next delivery, after a suspension.
func (b *bench) deliver() *Function {
	l := store.Lease{Job: theJob, Request: theRequest, Turn: b.runs + 1, Holder: string(rune('a' + b.runs)), Session: 1}
	f := New(Config{Grace: time.Minute, Config: effect.Config{Store: b.store, Lease: l, Replay: b.runs > 0}})
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
	require.True(b.t, b.store.Wake(theRequest, journal.PauseSleep, name,
		&journal.Response{Kind: journal.ResponseWake, By: journal.ByTimer}))
}

func sleep(ctx context.Context, name string) error {
	_, err := Wait(ctx, wire.Pause{Kind: journal.PauseSleep, Name: name, For: 1})
	return err
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

	b = &bench{t: t, store: effectstest.New()}
	b.store.Put(theJob, theRequest, nil)
	f = b.deliver()
	f.Run(t.Context(), func(ctx context.Context) ([]byte, error) {
		f.Session().Abandon(context.Canceled)
		_, err := effects.Do(context.WithoutCancel(ctx), "late", func(context.Context) (int, error) {
			t.Error("it is called")
			return 0, nil
		})
		return nil, err
	})
	require.Empty(t, b.store.Rows(theRequest))
}

func TestAContextOfAnotherHandlerIsRefused(t *testing.T) {
	t.Parallel()
	ctx := effect.With(t.Context(), New(Config{}).Session())
	require.ErrorContains(t, sleep(ctx, "x"), "its context is not one of the function's")
	ctx = effect.With(t.Context(), effect.NewSession(effect.Config{}))
	require.ErrorContains(t, sleep(ctx, "x"), "workers.HandleDurable")
}
