package quiputest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

const insurance = `
flow: insurance
version: "1"
output: "${ issue.output }"
activities:
  start: {type: trigger}
  issue: {type: worker, topic: policy.issue, input: "${ start.output }"}
transitions:
  start: [issue]
`

// trip is a durable function that uses everything.
func trip(w outside) func(*workers.Registry) {
	airline, bank := w.Receiver("airline"), w.Receiver("bank")
	apply := func(ctx context.Context) error { airline.Apply(ctx, effects.Key(ctx)); return nil }
	book := func(what string) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			undo := workers.Compensate(ctx, "cancel "+what, apply)
			n, err := effects.Do(ctx, "book "+what, func(ctx context.Context) (int, error) { return 1, apply(ctx) }, effects.Idempotent)
			return n, errors.Join(undo, err)
		}
	}
	return func(reg *workers.Registry) {
		workers.Handle(reg, "policy.issue", func(_ context.Context, in string) (string, error) { return "policy of " + in, nil })
		workers.HandleDurable(reg, "trip", func(ctx context.Context, card string) (string, error) {
			_, err := workers.All(ctx, book("flight"), book("hotel"))
			policy, errPolicy := workers.Child[string](ctx, "insurance", "insurance", card)
			by, errBy := workers.Await[string](ctx, "trip.confirmed", 30*24*time.Hour)
			if err := errors.Join(err, errPolicy, errBy); err != nil {
				return "", err
			}
			if err := workers.Sleep(ctx, "cooling off", 24*time.Hour); err != nil {
				return "", err
			}
			return effects.Do(ctx, "charge", func(ctx context.Context) (string, error) {
				if card == "declined" {
					return "", workers.Fail(402, "declined")
				}
				bank.Apply(ctx, effects.Key(ctx))
				return policy + ", confirmed by " + by, nil
			}, effects.Idempotent)
		})
	}
}

// E12: a function sleeps, waits and starts children, and its world waits for it.
func TestE12Function(t *testing.T) {
	t.Parallel()
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.DeployYAML(insurance)
		w.Serve(trip(w))
		job := w.Call("trip", "t-1", "visa")
		w.Advance(29 * 24 * time.Hour)
		require.Contains(t, job.Why(), "trip.confirmed")
		require.Len(t, job.Children(), 1)
		w.Signal("trip.confirmed", "t-1", "Ada")
		from := time.Now()
		var out string
		job.Output(&out)
		require.Equal(t, "policy of visa, confirmed by Ada", out)
		require.WithinDuration(t, from.Add(24*time.Hour), time.Now(), time.Second)
		require.Equal(t, 1, w.Bodies("book flight"))
		require.Equal(t, 1, w.Bodies("charge"))

		late := w.Call("trip", "t-2", "visa")
		late.Fails(408)
		_, done := w.Receiver("airline").Total()
		require.Equal(t, 2+4, done)
	})
}

// E12, E15: it has the same end wherever its process dies, whatever it waits for. Its calls are undone
// once.
func TestE12CrashOfAFunction(t *testing.T) {
	t.Parallel()
	confirm := func(w *quiputest.World) { w.Signal("trip.confirmed", "t-1", "Ada") }
	for name, c := range map[string]struct {
		card string
		end  func(t testing.TB, w *quiputest.World, job *quiputest.Job)
		done int // booked and cancelled
	}{
		"confirmed": {"visa", func(_ testing.TB, w *quiputest.World, job *quiputest.Job) {
			w.Advance(time.Hour)
			confirm(w)
			job.Output(nil)
		}, 2},
		"declined": {"declined", func(t testing.TB, w *quiputest.World, job *quiputest.Job) {
			confirm(w)
			require.Equal(t, "declined", job.Fails(402).Message)
		}, 4},
		"interrupted": {"declined", func(_ testing.TB, w *quiputest.World, job *quiputest.Job) {
			w.Advance(time.Hour)
			job.Interrupt(quiputest.Interrupt{})
			job.Fails(410)
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quiputest.CrashEverywhere(t, func(t testing.TB, w *quiputest.World) {
				w.DeployYAML(insurance)
				w.Serve(trip(w))
				c.end(t, w, w.Call("trip", "t-1", c.card))
				w.Settle()
				_, done := w.Receiver("airline").Total()
				require.Equal(t, c.done, done)
			})
		})
	}
}
