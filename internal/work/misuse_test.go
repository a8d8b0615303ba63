package work

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

func never(context.Context) (int, error) { return 0, errors.New("it is called") }

func TestCallsThatAreNotOfTheirBranch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fn   func(ctx context.Context, o *outside) error
		says string
	}{
		"a call within an effect": {does("a", func(ctx context.Context) (int, error) { return effects.Do(ctx, "b", never) }, effects.Idempotent), "another call of its branch is under way"},
		"a wait within an effect": {does("a", func(ctx context.Context) (int, error) { return 0, workers.Sleep(ctx, "x", 1) }, effects.Pure), "another call of its branch is under way"},
		"a branch with the context around it": {func(ctx context.Context, o *outside) error {
			_, err := workers.All(ctx, func(context.Context) (int, error) { return do(ctx, o, "b", 1) })
			return err
		}, "use the context that the branch gets"},
		"a wait in a goroutine of one's own": {func(ctx context.Context, _ *outside) error {
			failed := make(chan error)
			go func() { failed <- workers.Sleep(ctx, "x", time.Second) }()
			return <-failed
		}, "it is called in a goroutine of your own: use workers.All"},
		"two calls at a time": {func(ctx context.Context, o *outside) error {
			var wg sync.WaitGroup
			var errs [2]error
			meet := make(chan struct{})
			wg.Go(func() {
				_, errs[0] = effects.Do(ctx, "a", func(context.Context) (int, error) {
					close(meet)
					<-meet
					runtime.Gosched()
					return 1, nil
				}, effects.Pure)
			})
			<-meet
			wg.Go(func() {
				for errs[1] == nil { // while the other one is under way
					_, errs[1] = effects.Do(ctx, "b", never, effects.Pure, effects.Once())
				}
			})
			wg.Wait()
			return errors.Join(errs[:]...)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := play(t, c.fn)
			failedWith(t, w.next(), journal.ResponseFailedAttempt, 500, wire.ClassError, c.says)
			require.Empty(t, w.store.Waits(w.id()))
		})
	}
}

func TestCallsOfFunctionsInOtherHandlers(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(ctx context.Context) error{
		"Sleep":      func(ctx context.Context) error { return workers.Sleep(ctx, "x", time.Hour) },
		"Await":      func(ctx context.Context) error { _, err := workers.Await[int](ctx, "x", 0); return err },
		"Child":      func(ctx context.Context) error { _, err := workers.Child[int](ctx, "x", "f", 1); return err },
		"All":        func(ctx context.Context) error { _, err := workers.All(ctx, never); return err },
		"First":      func(ctx context.Context) error { _, _, err := workers.First(ctx, never); return err },
		"Now":        func(ctx context.Context) error { _, err := workers.Now(ctx); return err },
		"Version":    func(ctx context.Context) error { _, err := workers.Version(ctx, "x", 1); return err },
		"Compensate": func(ctx context.Context) error { return workers.Compensate(ctx, "x", nil) },
	} {
		err := use(effect.With(t.Context(), effect.NewSession(effect.Config{})))
		require.ErrorIs(t, err, effects.ErrUsage, name)
		require.ErrorContains(t, err, "workers.HandleDurable", name)
	}
}

// No later run would repeat what a function does with an error whose cause is gone by
// then. A wait does not end with a context of the function.
func TestAnEndedContextBeginsNothing(t *testing.T) {
	t.Parallel()
	within := func(c code) code {
		return func(ctx context.Context, o *outside) error {
			own, cancel := context.WithCancel(ctx)
			cancel()
			return c(own, o)
		}
	}
	w := play(t, func(ctx context.Context, o *outside) error {
		if within(call("a"))(ctx, o) != nil {
			return call("instead")(ctx, o)
		}
		return nil
	})
	failedWith(t, w.next(), journal.ResponseFailedAttempt, 500, wire.ClassError, `effect "a" did not begin`)
	require.Empty(t, w.outer.names)
	require.Empty(t, w.recorded())
	require.Equal(t, []string{"sleep x at 1"}, waits(play(t, within(rest("x"))).next()))
}
