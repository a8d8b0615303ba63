package inspect_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/testkit/ordertest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

// A process dies at each point of a call. The next run asks the verifier of a guarded effect, and
// calls an idempotent one again.
func TestOutcomesAfterACrash(t *testing.T) {
	t.Parallel()
	for class, says := range map[effects.Class]string{
		effects.Guarded: "effect book is done, says its verifier", effects.Idempotent: "effect book is done, taken over by worker-",
	} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var all strings.Builder
			quiputest.CrashEverywhere(t, func(_ testing.TB, w *quiputest.World) {
				w.DeployYAML(ordertest.Parcel)
				w.Serve(func(reg *workers.Registry) {
					workers.Verify(reg, "book",
						effects.VerifierFunc(func(context.Context, effects.Question) (effects.Answer, error) {
							return effects.Answer{State: effects.StateDone, Result: json.RawMessage(`"p-1"`)}, nil
						}), effects.Warn)
					workers.Handle(reg, "send", func(ctx context.Context, _ string) (string, error) {
						return effects.Do(ctx, "book", func(context.Context) (string, error) { return "p-1", nil }, class)
					})
				})
				job := w.Start("parcel", "k", map[string]string{"to": "Lima"})
				job.Output(nil)
				mu.Lock()
				defer mu.Unlock()
				events := inspect.Tell(nil, nil, job.Journal())
				for i := range events {
					all.WriteString(events[i].Text + "\n")
				}
			})
			require.Contains(t, all.String(), says)
			require.Contains(t, all.String(), "effect book is done\n", "where nothing crashed")
		})
	}
}

// The answer of a call is lost, and a verifier finds out within the same run: the journal says both.
func TestWhoFoundAnOutcomeIsTold(t *testing.T) {
	t.Parallel()
	for _, done := range []bool{true, false} {
		quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
			calls := 0
			w.Serve(func(reg *workers.Registry) {
				workers.Verify(reg, "book",
					effects.VerifierFunc(func(context.Context, effects.Question) (effects.Answer, error) {
						if done {
							return effects.Answer{State: effects.StateDone, Result: json.RawMessage(`"p-1"`), Note: "seen"}, nil
						}
						return effects.Answer{State: effects.StateNotDone}, nil
					}), effects.Warn)
				workers.Handle(reg, "send", func(ctx context.Context, _ string) (string, error) {
					return effects.Do(ctx, "book", func(context.Context) (string, error) {
						if calls++; calls == 1 {
							return "", errors.New("connection reset")
						}
						return "p-2", nil
					})
				})
			})
			job := w.Call("send", "k", "Lima")
			job.Output(nil)
			var told string
			for _, e := range job.Journal() {
				if e.Effect == nil || e.Effect.Finding == nil {
					continue
				}
				require.Empty(t, told, "one outcome was found by a verifier")
				told = inspect.Found(e.Effect.Finding)
				require.Equal(t, done, e.Kind == journal.KindEffectCompleted)
			}
			require.Contains(t, told, "says its verifier github.com/quipu-journal/quipu/internal/inspect_test.TestWhoFoundAnOutcomeIsTold")
			require.Equal(t, done, strings.Contains(told, " (seen)"))
			require.True(t, strings.HasSuffix(told, "; its call failed: connection reset"), told)
		})
	}
}

// A function that is undone tells why, and how often a compensation has failed.
func TestAFailedCompensationIsTold(t *testing.T) {
	t.Parallel()
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		failures := 2
		w.Serve(func(reg *workers.Registry) {
			workers.HandleDurable(reg, "trip", func(ctx context.Context, _ any) (string, error) {
				err := workers.Compensate(ctx, "refund", func(context.Context) error {
					if failures--; failures >= 0 {
						return errors.New("the account is closed")
					}
					return nil
				})
				return "", errors.Join(err, workers.Fail(409, "out of stock"))
			})
		})
		job := w.Call("trip", "k", nil)
		job.Fails(409)
		var all []string
		woken := 0
		events := inspect.Tell(nil, nil, job.Journal())
		for i := range events {
			text := events[i].Text
			if text == "compensation refund is due again" {
				woken++ // at the same time as what follows, so in no fixed order
				continue
			}
			if e := events[i].Error; e != nil {
				text += " | " + e.Class + ": " + e.Message
			}
			all = append(all, text)
		}
		require.Equal(t, []string{
			"compensation refund is registered",
			"failed with code 409: begins to compensate | business: out of stock",
			"compensation refund failed (failure 1); it runs again after 1s",
			"compensation refund failed (failure 2); it runs again after 2s",
			"compensation refund is done",
			"failed with code 409 | business: out of stock",
			"the job failed with code 409 | business: out of stock",
		}, all[2:])
		require.Equal(t, 2, woken)
	})
}
