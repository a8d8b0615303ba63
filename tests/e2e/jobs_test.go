package e2e

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// P19: the hash chain is over the bytes as they were stored, whatever spelling
// of JSON a client chose.
func TestP19OddSpellingsVerify(t *testing.T) {
	inAMode(t, func(t *testing.T, e *env) {
		reg := workers.New()
		workers.Handle(reg, "odd", func(context.Context, any) (any, error) {
			return map[string]any{"receipt": "<&> ü 😀 \u2028", "z": 1e2, "a": []any{nil, 0.10}}, nil
		})
		rt, _ := e.run(reg)
		e.Deploy(rt, replaced(oneStep("odd"), `{id: "${ start.output.id }"}`, `"${ start.output }"`))
		raw := []byte(`{ "z\u00e9": 1e2, "total" : 100.00, "big": 9007199254740993, "n": {"b":-0, "a":[ ] } }`)
		job := e.Start(rt, "one", "odd", json.RawMessage(raw))
		_, err := e.Wait(rt, job)
		require.NoError(t, err)
		created := e.entries(rt, job)[0]
		require.Equal(t, journal.KindCreated, created.Kind)
		require.Equal(t, `{"big":9007199254740993,"n":{"a":[],"b":0},"total":100,"zé":100}`, string(created.Input))
		e.Verify()
	})
}

// P21, P31: a handler, a Guarded call, and a Guarded call of a function, each of which
// outlives ack wait and lease by far, run once as long as their process lives, and
// are not parked.
func TestP21P31LongCallsKeepTheirLease(t *testing.T) {
	inAMode(t, func(t *testing.T, e *env) {
		var runs atomic.Int64
		long := func(ctx context.Context) (map[string]string, error) {
			runs.Add(1)
			select {
			case <-time.After(3 * world.Lease): // the work itself
				return map[string]string{"receipt": "r"}, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		reg := workers.New()
		workers.Handle(reg, "handler", func(ctx context.Context, _ any) (map[string]string, error) { return long(ctx) })
		workers.Handle(reg, "guarded", func(ctx context.Context, _ any) (map[string]string, error) {
			return effects.Do(ctx, "slow", long)
		})
		workers.HandleDurable(reg, "function", func(ctx context.Context, _ any) (map[string]string, error) {
			if err := workers.Sleep(ctx, "nap", time.Millisecond); err != nil {
				return nil, err
			}
			return effects.Do(ctx, "slow", long)
		})
		rt, _ := e.run(reg)
		var jobs []quipu.Job
		for _, topic := range []string{"handler", "guarded", "function"} {
			e.Deploy(rt, replaced(oneStep(topic), "flow: one", "flow: "+topic))
			jobs = append(jobs, e.Start(rt, topic, topic, order{ID: topic}))
		}
		for _, job := range jobs {
			_, err := e.Wait(rt, job)
			require.NoError(t, err, job.Key)
		}
		require.Equal(t, int64(len(jobs)), runs.Load())
		letters, err := rt.Operator().DeadLetters(t.Context(), quipu.DeadLetterFilter{All: true, Limit: 10})
		require.NoError(t, err)
		require.Empty(t, letters)
		e.Verify()
	})
}
