package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal/store"
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

// undone checks that every booking was cancelled once, the last one first.
func undone(t *testing.T, r *receiver, order *[]string, mu *sync.Mutex, id string) {
	t.Helper()
	want := map[string]bool{}
	for _, call := range trip(id, true) {
		want[call] = true
	}
	r.appliedOnce(t, want)
	mu.Lock()
	defer mu.Unlock()
	cancelled := slices.Compact(slices.Clone(*order))
	require.Equal(t, []string{"cancel car " + id, "cancel hotel " + id, "cancel flight " + id}, cancelled)
}

// watched notes the order of cancellations.
func watched(r *receiver) (order *[]string, mu *sync.Mutex) {
	order, mu = new([]string), new(sync.Mutex)
	r.mood = func(what string) (time.Duration, int) {
		if len(what) > 6 && what[:6] == "cancel" {
			mu.Lock()
			*order = append(*order, what)
			mu.Unlock()
		}
		return 0, 200
	}
	return order, mu
}

// 3.5: a function that fails undoes what it did, in reverse order, although the
// process that undoes is killed in the middle.
func TestSagaUndoneUnderKills(t *testing.T) {
	t.Parallel()
	inAMode(t, func(t *testing.T, e *env) {
		r := newReceiver(t)
		order, mu := watched(r)
		rt := e.open(e.config(nil))
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
		undone(t, r, order, mu, "order-1")
		e.clean(rt)
	})
}

// 3.5: a job that is interrupted while its function waits is closed at once, and
// a job of its own undoes what the function did.
func TestSagaUndoneAfterInterrupt(t *testing.T) {
	t.Parallel()
	inAMode(t, func(t *testing.T, e *env) {
		r := newReceiver(t)
		order, mu := watched(r)
		rt := e.open(e.config(nil))
		e.deploy(rt, oneStep("trip"))
		startChild(t, e.child(r))
		job := e.start(rt, "one", "order-1", map[string]string{"id": "order-1"})
		e.suspended(rt, job, 1)
		_, err := rt.Interrupt(t.Context(), job.Key)
		require.NoError(t, err)
		_, err = e.wait(rt, job)
		var failed *quipu.JobError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 410, failed.Code)
		e.eventually("the cancellations", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(*order) >= 3
		})
		e.eventually("the end of the job that undoes", func() bool {
			jobs, err := rt.Jobs(t.Context(), quipu.JobFilter{})
			return err == nil && len(jobs) == 2 && jobs[0].State.Closed() && jobs[1].State.Closed()
		})
		undone(t, r, order, mu, "order-1")
		foundWhereTheyRan(t, rt, job)
		e.clean(rt)
	})
}

// foundWhereTheyRan finds the compensations of a job by their keys: both it and the
// job that undid it have them, and only the other ran them.
func foundWhereTheyRan(t *testing.T, rt *quipu.Runtime, job quipu.Job) {
	t.Helper()
	all, err := below.Of(rt).JobEffects(t.Context(), job.ID)
	require.NoError(t, err)
	compensations := 0
	for i := range all {
		if all[i].Class != store.ClassUndo {
			continue
		}
		compensations++
		f, err := rt.Effect(t.Context(), all[i].Key)
		require.NoError(t, err)
		require.Equal(t, quipu.EffectCompleted, f.State, f.Name)
		require.NotEqual(t, job.ID, f.Job.ID)
	}
	require.Equal(t, 3, compensations)
}
