package ordertest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

var update = flag.Bool("update", false, "write testdata anew")

// Order is a flow with every kind of activity, whose child is a job of Parcel.
const Order = `
flow: order
version: "1"
activities:
  start: {type: trigger}
  charge: {type: worker, topic: charge, input: {id: "${ job.id }", cents: "${ start.output.cents }"}, retry: {backoff: 2s, jitter: 0}}
  pack: {type: worker, topic: pack, each: start.output.items, parallel: 1, input: {sku: "${ item }", place: "${ index }"}}
  review: {type: hook, signal: order.reviewed, key: "${ job.id }", sleep: 48h}
  top: {type: hook}
  poll: {type: worker, topic: poll, input: "${ review.output.by }"}
  again: {type: cycle, to: top, max: 5}
  ship: {type: await, flow: parcel, id: "${ 'parcel-' + job.id }", input: {to: "${ start.output.to }"}}
  tell: {type: signal, topic: order.told, key: "${ job.id }", payload: {parcel: "${ ship.output }"}}
  thank: {type: worker, topic: thank, input: "${ ship.output.number }"}
output: {receipt: "${ charge.output }", parcel: "${ ship.output.number }"}
transitions:
  start: [charge]
  charge: [pack]
  pack: [review]
  review: [top]
  top: [poll]
  poll:
    - {to: again, when: "poll.output < 2"}
    - {to: ship, when: "poll.output >= 2"}
  ship: [tell]
  tell: [thank]
`

// Parcel is the flow of what is shipped.
const Parcel = `
flow: parcel
version: "1"
activities:
  start: {type: trigger}
  send: {type: worker, topic: send, input: "${ start.output.to }"}
output: {number: "${ send.output }"}
transitions: {start: [send]}
`

// Shop are the handlers: a charge that fails once, a poll that is answered the second
// time, a guarded call that is cut off, and a function that waits.
func Shop() func(*workers.Registry) {
	polls := 0
	return func(reg *workers.Registry) {
		workers.Handle(reg, "charge", func(ctx context.Context, in map[string]any) (string, error) {
			return effects.Do(ctx, "charge", func(context.Context) (string, error) {
				time.Sleep(3 * time.Second)
				if workers.Info(ctx).Attempt == 1 {
					return "", workers.RetryAfter(5*time.Second, effects.NotDone(errors.New("the network is away")))
				}
				return "ch_1", nil
			}, effects.Idempotent)
		})
		workers.Handle(reg, "pack", func(_ context.Context, in struct {
			SKU   string
			Place int
		},
		) (string, error) {
			time.Sleep(time.Duration(in.Place+1) * time.Second)
			return "box of " + in.SKU, nil
		})
		workers.Handle(reg, "poll", func(context.Context, string) (int, error) { polls++; return polls, nil })
		workers.Handle(reg, "send", func(ctx context.Context, to string) (string, error) {
			return effects.Do(ctx, "book", func(context.Context) (string, error) {
				if workers.Info(ctx).Turn == 1 {
					return "", errors.New("connection cut off")
				}
				return "p-1", nil
			}, effects.Guarded)
		})
		workers.HandleDurable(reg, "thank", func(ctx context.Context, number string) (string, error) {
			if err := workers.Sleep(ctx, "a week", 7*24*time.Hour); err != nil {
				return "", err
			}
			return "", workers.Fatal(errors.New("no address for " + number))
		})
	}
}

// golden is the file that Play compares with, in the directory of the test.
const golden = "testdata/order.txt"

// Play plays the order to its end, and requires that what tell writes of its job and of the child
// is the test's testdata/order.txt. With the flag -update it writes that file. It may be called
// once in a test.
func Play(t *testing.T, tell func(w io.Writer, j *quiputest.Job)) {
	t.Helper()
	var out bytes.Buffer
	quiputest.Run(t, func(_ testing.TB, w *quiputest.World) {
		w.DeployYAML(Order, Parcel)
		w.Serve(Shop())
		job := w.Start("order", "o-1", map[string]any{"cents": 1250, "items": []string{"pen", "ink"}, "to": "Lima"})
		w.Advance(time.Hour)
		w.Signal("order.reviewed", "o-1", map[string]string{"by": "ann"})
		w.Advance(time.Minute)
		for _, d := range w.DeadLetters() {
			d.Retry()
		}
		job.Fails(500)
		for _, j := range append([]*quiputest.Job{job}, job.Children()...) {
			tell(&out, j)
		}
	}, quiputest.AllowParked())
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, out.Bytes()) {
		t.Fatalf("not as in %s (-update writes it anew):\n%s", golden, out.Bytes())
	}
}
