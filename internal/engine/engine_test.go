package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// begin deploys the flow and starts n jobs that nobody publishes.
func (r *rig) begin(n, steps int) []journal.JobID {
	r.t.Helper()
	ctx := context.Background()
	b := flow.New("line").Version("1").Trigger("start")
	last := "start"
	for i := range steps {
		name := fmt.Sprintf("s%d", i)
		b = b.Worker(name, "work", flow.Input(map[string]any{"n": i, "x": "${ start.output.x }"})).Transition(last, name)
		last = name
	}
	f, err := b.Output(map[string]any{"last": "${ " + last + ".output.n }"}).Build()
	require.NoError(r.t, err)
	ref := collation.RefOf(f)
	_, err = r.store.Deploy(ctx, store.Deployment{Ref: ref, Canonical: f.Canonical()})
	require.NoError(r.t, err)
	starts := make([]store.Start, n)
	for i := range starts {
		starts[i] = store.Start{Flow: ref, Trigger: "start", Key: fmt.Sprintf("k%d", i), Input: []byte(`{"x":1}`)}
	}
	ids := make([]journal.JobID, n)
	for i, st := range starts {
		for ids[i].IsZero() { // until it is acknowledged
			ids[i] = r.eng.Committer().Start(ctx, []store.Start{st})[0].Job
		}
	}
	return ids
}

func echo(runs *atomic.Int64) *workers.Registry {
	reg := workers.New()
	workers.HandleRaw(reg, "work", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
		runs.Add(1)
		return in, nil
	})
	return reg
}

// J4: a message whose plan the store refuses for good is held with a dead letter, and delays no
// other.
func TestJ4PoisonedJobHoldsUpNobody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var runs, rejected atomic.Int64
		r := start(t, engine.Config{}, membus.Config{Seed: 3}, func(op string) error {
			if op == "commit" && rejected.CompareAndSwap(0, 1) {
				return fmt.Errorf("%w: 22P05", store.ErrRejected)
			}
			return nil
		}, echo(&runs))
		r.completed(r.begin(10, 2), `{"last":1}`)
	})
}

// A store that stays away makes the engine hand messages back, not lose them. They go on when
// the store is back (C10).
func TestC10LongOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var runs atomic.Int64
		var away atomic.Bool
		r := start(t, engine.Config{}, membus.Config{Seed: 5}, func(string) error {
			if away.Load() {
				return errors.Join(store.ErrUnavailable, errors.New("no route to host"))
			}
			return nil
		}, echo(&runs))
		ids := r.begin(5, 3)
		away.Store(true)
		time.Sleep(5 * time.Minute) // the bubble's clock
		away.Store(false)
		r.completed(ids, `{"last":2}`)
	})
}

// T10: an engine drains in bounded time while the database cannot be reached, even if all its
// messages came so often that each is carried alone.
func TestT10DrainInAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var runs atomic.Int64
		var away atomic.Bool
		r := start(t, engine.Config{}, membus.Config{Seed: 5}, func(op string) error {
			if away.Load() && op == "load" {
				return errors.Join(store.ErrUnavailable, errors.New("no route to host"))
			}
			return nil
		}, echo(&runs))
		r.begin(200, 3)
		away.Store(true)
		time.Sleep(10 * time.Minute) // the bubble's clock
		began := time.Now()
		r.close()
		require.Less(t, time.Since(began), time.Minute)
	})
}
