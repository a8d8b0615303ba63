package trace_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/trace"
	"github.com/quipu-journal/quipu/workers"
)

var update = flag.Bool("update", false, "write testdata anew")

const order = `
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

const parcel = `
flow: parcel
version: "1"
activities:
  start: {type: trigger}
  send: {type: worker, topic: send, input: "${ start.output.to }"}
output: {number: "${ send.output }"}
transitions: {start: [send]}
`

// shop are the handlers: a charge that fails once, a poll that is answered the second
// time, a guarded call that is cut off, and a function that waits.
func shop() func(*workers.Registry) {
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

// The tree of a job with every kind of activity, and of its child, as it is: attempts and what is
// between them, waits as time, steps with their own digits (O1).
func TestTree(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	quiputest.Run(t, func(_ testing.TB, w *quiputest.World) {
		w.DeployYAML(order, parcel)
		w.Serve(shop())
		job := w.Start("order", "o-1", map[string]any{"cents": 1250, "items": []string{"pen", "ink"}, "to": "Lima"})
		w.Advance(time.Hour)
		w.Signal("order.reviewed", "o-1", map[string]string{"by": "ann"})
		w.Advance(time.Minute)
		for _, d := range w.DeadLetters() {
			d.Retry()
		}
		job.Fails(500)
		for _, j := range append([]*quiputest.Job{job}, job.Children()...) {
			tree := built(j.Journal())
			oneTree(t, tree)
			fmt.Fprintf(&out, "%s %s\n%s", tree.Key, tree.State, text(tree))
		}
	}, quiputest.AllowParked())
	const golden = "testdata/order.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "go test ./trace -update writes it anew")
}

// text has times in seconds, because shorter ones differ between runs.
func text(tree *trace.Tree) string {
	var b strings.Builder
	depths := tree.Depths()
	for i := range tree.Spans {
		s := &tree.Spans[i]
		fmt.Fprintf(&b, "%9s %9s %s%s", seconds(s.Start-tree.Spans[0].Start), seconds(s.End-s.Start), strings.Repeat("  ", depths[i]), s.Name())
		for _, a := range s.Attributes {
			switch name, ok := strings.CutPrefix(a.Key, "quipu."); {
			case !ok || name == "job" || name == "writer" || name == "request" || name == "child" || name == "effect" || name == "signal":
			case a.Text != "":
				fmt.Fprintf(&b, " %s=%s", name, a.Text)
			default:
				fmt.Fprintf(&b, " %s=%d", name, a.Number)
			}
		}
		for _, l := range s.Links {
			fmt.Fprintf(&b, " →%s", l.Why)
		}
		if s.Failure != nil {
			fmt.Fprintf(&b, " ! %s", s.Failure.Class)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func seconds(micros int64) string {
	if micros < 0 {
		return "open"
	}
	return (time.Duration(micros) * time.Microsecond).Round(time.Second).String()
}
