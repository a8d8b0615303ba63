package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/ordertest"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// open is a job with everything that stands open: elements that are held, sent and tried again, a hook that
// waits for a signal or a time, an await, a function that waits for all it can.
const open = `
flow: open
version: "1"
activities:
  start: {type: trigger}
  pack: {type: worker, topic: pack, each: "[1, 2, 3, 4]", parallel: 2, input: "${ item }", retry: {attempts: 9, backoff: 1h}}
  review: {type: hook, signal: order.reviewed, key: k, sleep: 48h}
  ticks: {type: hook, signal: tick, key: k, repeat: true}
  ship: {type: await, flow: parcel, id: child, input: {to: Lima}}
  trip: {type: worker, topic: trip, within: 96h}
transitions: {start: [pack, review, ticks, ship, trip]}
`

// What the entries of a job tell of it at the last of them is what the tables have (J10), but for what
// is in no entry: publications, leases, when a message is looked at again.
func TestEntriesTellWhatTheTablesHave(t *testing.T) {
	t.Parallel()
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.DeployYAML(open)
		w.DeployYAML(ordertest.Parcel)
		w.Serve(func(reg *workers.Registry) {
			workers.Handle(reg, "pack", func(_ context.Context, n int) (int, error) {
				if n == 2 {
					return 0, errors.New("out of tape")
				}
				return n, nil
			})
			workers.Handle(reg, "send", func(ctx context.Context, _ any) (string, error) {
				return effects.Do(ctx, "call", func(context.Context) (string, error) { return "", errors.New("cut off") })
			})
			workers.HandleDurable(reg, "trip", func(ctx context.Context, _ any) (any, error) {
				_, _, err := workers.First(ctx,
					func(ctx context.Context) (any, error) { return nil, workers.Sleep(ctx, "nap", 24*time.Hour) },
					func(ctx context.Context) (any, error) { return workers.Await[any](ctx, "order.ok", 72*time.Hour) },
				)
				return nil, err
			})
		})
		job := w.Start("open", "k", nil)
		check := func() {
			w.Settle()
			for _, j := range append(w.Jobs(), job) {
				tables(t, j)
			}
		}
		check()
		w.Signal("tick", "k", 1)
		check()
		w.Advance(3 * time.Hour)
		check()
		w.Signal("order.reviewed", "k", nil)
		check()
		w.Advance(25 * time.Hour)
		check()
	})
}

// tables compares the tables of a job with its entries.
func tables(t testing.TB, j *quiputest.Job) {
	t.Helper()
	now := j.Info()
	v := &store.JobView{}
	v.ID, v.Key, v.Generation = j.ID, j.Key, now.Generation
	was, err := inspect.Past(v, j.Journal())
	require.NoError(t, err)
	require.Equal(t, now.State, was.State)
	require.Equal(t, now.Semaphore, was.Semaphore)
	require.Equal(t, now.Code, was.Code)
	require.Equal(t, now.Ended, was.Ended)
	require.Equal(t, string(now.Output), string(was.Output))
	require.Equal(t, sorted(now.Activities, ofActivity), sorted(was.Activities, ofActivity))
	require.Equal(t, sorted(now.Messages, ofMessage), sorted(was.Messages, ofMessage))
	require.Equal(t, sorted(now.Waits, ofWait), sorted(was.Waits, ofWait))
}

func sorted[V any](all []V, text func(V) string) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = text(v)
	}
	slices.Sort(out)
	return out
}

func ofActivity(a view.Activity) string {
	return fmt.Sprint(a.Activity, a.Address, a.Pass, a.Ledger, a.Says, a.Code, a.Child, a.Ended, a.Elements)
}

func ofMessage(m view.Message) string {
	element := -1
	if m.Element != nil { // its flow has its topic
		element, m.Topic = *m.Element, ""
	}
	return fmt.Sprint(m.GUID, m.Kind, m.Activity, m.Address, m.Topic, element, m.Turn, m.Attempt, m.Held, m.Since,
		m.Open)
}

func ofWait(w view.Wait) string {
	return fmt.Sprint(w.Activity, w.Address, w.Topic, w.Key, w.Since.UnixMicro(), w.SinceEntry, w.Repeat, w.Signals)
}
