package quiputest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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
			n, err := effects.Do(ctx, "book "+what, func(ctx context.Context) (int, error) {
				return 1, apply(ctx)
			}, effects.Idempotent)
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

// outside is where handlers find their receivers: in a world, or nowhere.
type outside interface {
	Receiver(name string) *quiputest.Receiver
}

type nowhere struct{}

func (nowhere) Receiver(string) *quiputest.Receiver { return new(quiputest.Receiver) }

// J12, E15: recorded runs are replayed with the same code, however they ended, and nothing
// outside is called.
func TestE15ReplayJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	quiputest.Run(t, func(_ testing.TB, w *quiputest.World) {
		w.DeployYAML(insurance)
		w.Serve(trip(w))
		done, declined := w.Call("trip", "done", "visa"), w.Call("trip", "declined", "declined")
		interrupted, late := w.Call("trip", "interrupted", "visa"), w.Call("trip", "late", "visa")
		w.Signal("trip.confirmed", "done", "Ada")
		w.Signal("trip.confirmed", "declined", "Ada")
		w.Advance(time.Hour)
		interrupted.Interrupt(quiputest.Interrupt{})
		done.Output(nil)
		declined.Fails(402)
		interrupted.Fails(410)
		w.Settle()
		w.Call("trip", "under way", "visa")
		w.Settle()
		w.Export(filepath.Join(dir, "trips.jsonl"))
		late.Fails(408)
	})
	quiputest.Run(t, func(_ testing.TB, w *quiputest.World) {
		w.DeployYAML(order, shipping)
		w.Serve(shop(w))
		w.Start("order", "o-1", map[string]any{"lines": []string{"a", "b", "c"}}).Output(nil)
		w.Export(filepath.Join(dir, "orders.jsonl"))
	})
	flows := t.TempDir()
	for name, text := range map[string]string{"order.yaml": order, "shipping.yaml": shipping, "insurance.yaml": insurance} {
		require.NoError(t, os.WriteFile(filepath.Join(flows, name), []byte(text), 0o600))
	}
	quiputest.ReplayJournal(t, dir, func(reg *workers.Registry) {
		trip(nowhere{})(reg)
		shop(nowhere{})(reg)
	}, quiputest.Flows(filepath.Join(flows, "*.yaml")), quiputest.SameAnswers())
}
