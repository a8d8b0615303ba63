package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

// oneStep is a flow of one worker.
func oneStep(topic string) string {
	return fmt.Sprintf(`
flow: one
version: "1"
output: {receipt: "${ step.output.receipt }"}
activities:
  start: {type: trigger}
  step:  {type: worker, topic: %s, input: {id: "${ start.output.id }"}, retry: {attempts: 5, backoff: 50ms}}
transitions:
  start: [step]
`, topic)
}

// P7, K0: a start whose process died right after its inception is resumed by
// the engine, not by the caller's retry; the retry says what is there.
func TestP7StartWithoutPublication(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		cfg := e.config(nil)
		cfg.NATS = "" // a starter that commits and never publishes
		client := e.open(cfg)
		e.deploy(client, fmt.Sprintf(chargeFlow, ""))
		job := e.start(client, "order", "order-1", map[string]any{"total": 1})
		_, err := client.Start(t.Context(), "order", "order-1", map[string]any{"total": 1})
		already := (*quipu.ErrAlreadyStarted)(nil)
		require.ErrorAs(t, err, &already)
		rt, _ := e.run(oneHandler(func(context.Context, charge) (map[string]any, error) {
			return map[string]any{"receipt": "r"}, nil
		}))
		_, err = e.wait(rt, job)
		require.NoError(t, err)
		e.clean(rt)
	})
}

// P18: an effect with an empty result is a result: a replay does not run it.
func TestP18EmptyResultIsCached(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		var effectRuns atomic.Int64
		rt, _, _, err := single(e, "", func(ctx context.Context, _ charge) (map[string]any, error) {
			_, err := effects.Do(ctx, "touch", func(context.Context) (any, error) {
				effectRuns.Add(1)
				return nil, nil //nolint:nilnil // the empty result is the point
			})
			if err != nil {
				return nil, err
			}
			if workers.Info(ctx).Try < 3 {
				return nil, errors.New("fails after the effect")
			}
			return map[string]any{"receipt": "r"}, nil
		})
		require.NoError(t, err)
		require.Equal(t, int64(1), effectRuns.Load())
		e.clean(rt)
	})
}

// P31: a live Guarded call that outlives its ack wait is neither called again
// nor parked.
func TestP31LiveGuardedCallKeepsItsLease(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		var calls atomic.Int64
		rt, _, _, err := single(e, "", func(ctx context.Context, _ charge) (map[string]any, error) {
			return effects.Do(ctx, "slow", func(ctx context.Context) (map[string]any, error) {
				calls.Add(1)
				select {
				case <-time.After(3 * quickLease): // the call itself
				case <-ctx.Done():
				}
				return map[string]any{"receipt": "r"}, ctx.Err()
			})
		})
		require.NoError(t, err)
		require.Equal(t, int64(1), calls.Load())
		letters, err := rt.DeadLetters(t.Context(), true, 10)
		require.NoError(t, err)
		require.Empty(t, letters)
		e.clean(rt)
	})
}

// dieInCall starts job order-1 of one step, kills the worker after its call for
// what was applied outside and before it was answered, and starts another.
func (e *env) dieInCall(topic, what string) (*receiver, *quipu.Runtime, quipu.Job) {
	e.t.Helper()
	r := newReceiver(e.t)
	rt := e.open(e.config(nil))
	e.deploy(rt, oneStep(topic))
	h := r.hold(e.t, what)
	first := startChild(e.t, e.child(r))
	job := e.start(rt, "one", "order-1", order{ID: "order-1"})
	<-h.arrived
	first.kill()
	h.free()
	startChild(e.t, e.child(r))
	return r, rt, job
}

// P16, 3.2 row 2, Guarded: the process dies after the outside call and before
// anything is recorded. It is never called again by itself; a person answers.
func TestP16GuardedCrashParksForAPerson(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		r, rt, job := e.dieInCall("guarded", "touch order-1")
		var id int64
		e.eventually("the parked effect's dead letter", func() bool {
			letters, err := rt.DeadLetters(t.Context(), false, 10)
			require.NoError(t, err)
			if len(letters) == 1 {
				id = letters[0].ID
			}
			return id != 0
		})
		require.NoError(t, rt.Resolve(t.Context(), id, map[string]any{"receipt": "by hand"}, "ann", "found it in their books"))
		out, err := e.wait(rt, job)
		require.NoError(t, err)
		require.JSONEq(t, `{"receipt":"by hand"}`, string(out))
		calls, _ := r.askedFor("touch order-1")
		require.Equal(t, 1, calls, "Guarded never runs again by itself")
		e.clean(rt)
	})
}

// P16, 3.2 row 2, Idempotent: it runs again under the same key, applied once.
func TestP16IdempotentCrashRunsAgainUnderTheSameKey(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		r, rt, job := e.dieInCall("charge", "charge order-1")
		_, err := e.wait(rt, job)
		require.NoError(t, err)
		calls, keys := r.askedFor("charge order-1")
		require.Equal(t, 1, keys, "one Idempotency-Key")
		require.GreaterOrEqual(t, calls, 2)
		e.clean(rt)
	})
}

// P17, P22, P32, F2: a worker stands still past ack wait and lease in the
// middle of a call; another takes the request over and answers; the first wakes
// up, finishes its call and goes on to its next effect. One of them started
// each effect at a time, the first accepted answer stands, and what the late one
// appends does not touch what the answer bound.
func TestP22P32StoppedWorkerComesBackLate(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		r := newReceiver(t)
		rt := e.open(e.config(nil))
		e.deploy(rt, oneStep("twostep"))
		h := r.hold(t, "first order-1")
		stopped := startChild(t, e.child(r))
		job := e.start(rt, "one", "order-1", order{ID: "order-1"})
		<-h.arrived
		stopped.signal(syscall.SIGSTOP)
		h.free()
		startChild(t, e.child(r))
		out, err := e.wait(rt, job)
		require.NoError(t, err)
		require.JSONEq(t, `{"receipt":"order-1"}`, string(out))
		stopped.signal(syscall.SIGCONT)
		stopped.terminate() // drained: the late handler has come to its end
		require.Equal(t, "201100000000001", e.ledger(rt, job, "step"))
		for _, what := range []string{"first order-1", "second order-1"} {
			_, keys := r.askedFor(what)
			require.Equal(t, 1, keys, "%s under one key", what)
		}
		e.clean(rt)
	})
}

// P23, C15: a branch fails while another is open: the job closes with it, the
// other's worker learns of it, and its late answer finds no licence.
func TestP23FailureWithdrawsTheOtherBranch(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		reg := workers.New()
		running, told := make(chan struct{}), make(chan error, 1)
		workers.Handle(reg, "slow", func(ctx context.Context, _ any) (any, error) {
			close(running)
			<-ctx.Done()
			told <- context.Cause(ctx)
			return nil, context.Cause(ctx)
		})
		workers.Handle(reg, "bad", func(context.Context, any) (any, error) {
			<-running
			return nil, workers.Fail(422, "cannot be done")
		})
		rt, _ := e.run(reg)
		e.deploy(rt, `
flow: two
version: "1"
activities:
  start: {type: trigger}
  slow:  {type: worker, topic: slow}
  bad:   {type: worker, topic: bad}
  after: {type: worker, topic: after}
transitions:
  start: [slow, bad]
  slow: [after]
`)
		job := e.start(rt, "two", "two-1", nil)
		_, err := e.wait(rt, job)
		failed := (*quipu.JobError)(nil)
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 422, failed.Code)
		require.ErrorContains(t, <-told, "closed", "the heartbeat learns of a closed job (E9)")
		require.Empty(t, e.ledger(rt, job, "after"))
		e.clean(rt)
	})
}

// T2: what is started while NATS is away is due at once, and not only when a
// lost message would be looked for.
func TestT2StartWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	cfg := e.config(nil)
	cfg.Resend = time.Hour
	client := e.open(cfg)
	e.deploy(client, oneStep("charge"))
	require.NoError(t, e.nats.Shutdown())
	n := 0
	e.eventually("a start that knows that NATS is away", func() bool {
		n++
		key := fmt.Sprintf("order-%d", n)
		v := e.view(client, e.start(client, "one", key, order{ID: key}))
		return v.Rows[0].Publication == 0 && v.Rows[0].NextAt <= v.Started
	})
}

// T5, F9: a process that starts while NATS is away does not give up: it takes work
// when NATS is there.
func TestF9ProcessStartsWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	client := e.open(e.config(nil))
	e.deploy(client, oneStep("charge"))
	require.NoError(t, e.nats.Shutdown())
	job := e.start(client, "one", "order-1", order{ID: "1"})
	reg := workers.New()
	workers.Handle(reg, "charge", func(_ context.Context, in order) (map[string]string, error) {
		return map[string]string{"receipt": in.ID}, nil
	})
	e.run(reg)
	e.eventually("the process has looked for its streams", func() bool {
		return strings.Contains(e.log.String(), "the streams cannot be made yet")
	})
	require.NoError(t, e.nats.Restart(t.Context()))
	_, err := e.wait(client, job)
	require.NoError(t, err)
	e.clean(client)
}
