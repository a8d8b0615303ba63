package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

func init() { moreHandlers = append(moreHandlers, sagaHandlers) }

// sagaHandlers register a function that books three things, each with its undo,
// and then waits: it fails when it is told to.
func sagaHandlers(reg *workers.Registry, receiver string) {
	workers.HandleDurable(reg, "trip", func(ctx context.Context, in order) (map[string]string, error) {
		for _, what := range []string{"flight", "hotel", "car"} {
			err := workers.Compensate(ctx, what, func(ctx context.Context) error {
				_, err := call(ctx, receiver, effects.Key(ctx), "cancel "+what+" "+in.ID)
				return err
			})
			if err != nil {
				return nil, err
			}
			_, err = effects.Do(ctx, what, func(ctx context.Context) (map[string]string, error) {
				return call(ctx, receiver, effects.Key(ctx), "book "+what+" "+in.ID)
			}, effects.Idempotent)
			if err != nil {
				return nil, err
			}
		}
		ok, err := workers.Await[bool](ctx, "paid", 0)
		if err == nil && !ok {
			err = workers.Fail(402, "not paid")
		}
		return map[string]string{"receipt": in.ID}, err
	})
}

// trip is what the function books for an id, and what it cancels when undone.
func trip(id string, undone bool) (calls []string) {
	for _, what := range []string{"flight", "hotel", "car"} {
		calls = append(calls, "book "+what+" "+id)
		if undone {
			calls = append(calls, "cancel "+what+" "+id)
		}
	}
	return calls
}

// undone checks that every booking of an id was made and cancelled once, the last one first.
func undone(t *testing.T, r *receiver, id string) {
	t.Helper()
	want := map[string]bool{}
	for _, call := range trip(id, true) {
		want[call] = true
	}
	r.appliedOnce(t, want)
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Equal(t, []string{"cancel car " + id, "cancel hotel " + id, "cancel flight " + id}, r.order[3:])
}

// 3.5: a function that fails undoes what it did, in reverse order, although the
// process that undoes is killed in the middle.
func TestSagaUndoneUnderKills(t *testing.T) {
	t.Parallel()
	inAMode(t, func(t *testing.T, e *env) {
		r := newReceiver(t)
		rt := e.client()
		e.deploy(rt, oneStep("trip"))
		h := r.hold(t, "cancel hotel order-1")
		dying := startChild(t, e.child(r))
		job := e.start(rt, "one", "order-1", map[string]string{"id": "order-1"})
		e.suspended(rt, job, 1)
		_, err := rt.Signal(t.Context(), "paid", job.Key, false)
		require.NoError(t, err)
		<-h.arrived
		dying.kill()
		h.free()
		startChild(t, e.child(r))
		_, err = e.wait(rt, job)
		var failed *quipu.JobError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 402, failed.Code)
		undone(t, r, "order-1")
		e.clean(rt)
	})
}
