package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/world"
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
	inAMode(t, func(t *testing.T, e *env) {
		client := e.client(func(c *quipu.Config) { c.NATS = "" }) // it commits and never publishes
		e.Deploy(client, oneStep("charge"))
		job := e.Start(client, "one", "order-1", order{ID: "1"})
		again, err := client.Start(t.Context(), "one", "order-1", order{ID: "1"})
		require.NoError(t, err)
		require.True(t, again.Existing)
		reg := workers.New()
		workers.Handle(reg, "charge", func(context.Context, any) (map[string]string, error) {
			return map[string]string{"receipt": "r"}, nil
		})
		rt, _ := e.run(reg)
		_, err = e.Wait(rt, job)
		require.NoError(t, err)
		e.Verify()
	})
}

// P17, P22, P30, P32, F2: a worker stands still past ack wait and lease in the middle
// of a call; another takes the request over and answers; the first wakes up, finishes
// its call and goes on. One of them started each effect at a time, the first accepted
// answer stands, and what the late one appends does not touch what the answer bound.
func TestP22P32StoppedWorkerComesBackLate(t *testing.T) {
	inAMode(t, func(t *testing.T, e *env) {
		db, r, rt := e.tables(), world.NewOutside(t), e.client()
		started := map[string]quipu.Job{}
		var holds []*world.Hold
		for topic, held := range map[string]string{ // order and topic are one word
			"twostep": "first twostep", "fnwindow.idempotent": "inside fnwindow.idempotent", "note": "inside note",
		} {
			holds = append(holds, r.Hold(t, held))
			f := e.Deploy(rt, replaced(oneStep(topic), "flow: one", "flow: "+strings.ReplaceAll(topic, ".", "_")))
			started[topic] = e.Start(rt, f.Name(), topic, order{ID: topic})
		}
		stopped := startChild(t, e.child(r))
		for _, h := range holds {
			world.AwaitFrom(stopped, "a call that is held", h.Arrived)
		}
		stopped.Signal(syscall.SIGSTOP)
		for _, h := range holds {
			h.Free()
		}
		startChild(t, e.child(r))
		for _, job := range started {
			_, err := e.Wait(rt, job)
			require.NoError(t, err)
		}
		stopped.Signal(syscall.SIGCONT)
		require.NoError(t, stopped.Drain(patience), "%s", stopped.Log) // drained: the late handlers have come to their end
		for _, what := range []string{"first twostep", "second twostep", "inside fnwindow.idempotent"} {
			_, keys := r.AskedFor(what)
			require.Equal(t, 1, keys, "%s under one key", what)
		}
		for _, topic := range []string{"twostep", "note"} {
			require.Equal(t, "201100000000001", e.ledger(rt, started[topic], "step"), "one answer was accepted")
		}
		calls, _ := r.AskedFor("inside note") // J8: the first is refused as a whole
		require.Equal(t, 2, calls, "both ran the body, one stands")
		require.Equal(t, 1, e.count(db, "notes"))
		e.Verify()
	})
}

// P23, C15: a branch fails while another is open: the job closes with it, the
// other's worker learns of it, and its late answer finds no row.
func TestP23FailureCancelsTheOtherBranch(t *testing.T) {
	inAMode(t, func(t *testing.T, e *env) {
		reg := workers.New()
		running, told := make(chan struct{}), make(chan struct{})
		begun, closed := sync.OnceFunc(func() { close(running) }), sync.OnceFunc(func() { close(told) })
		workers.Handle(reg, "slow", func(ctx context.Context, _ any) (any, error) {
			begun()
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), store.ErrJobClosed) { // not a machine that stood still for a lease
				closed()
			}
			return nil, context.Cause(ctx)
		})
		workers.Handle(reg, "bad", func(context.Context, any) (any, error) {
			<-running
			return nil, workers.Fail(422, "cannot be done")
		})
		rt, _ := e.run(reg)
		e.Deploy(rt, `
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
		job := e.Start(rt, "two", "two-1", nil)
		_, err := e.Wait(rt, job)
		failed := (*quipu.JobError)(nil)
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 422, failed.Code)
		select {
		case <-told:
		case <-time.After(time.Minute):
			require.Fail(t, "nobody told the run that its job is closed (E9)")
		}
		require.Empty(t, e.ledger(rt, job, "after"))
		e.Verify()
	})
}

// T2: what is started while NATS is away is due at once, and not only when a
// lost message would be looked for.
func TestT2StartWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	client := e.client(func(c *quipu.Config) { c.Resend = time.Hour })
	e.Deploy(client, oneStep("charge"))
	require.NoError(t, e.NATS.Shutdown())
	n := 0
	e.eventually("a start that knows that NATS is away", func() bool {
		n++
		key := fmt.Sprintf("order-%d", n)
		v := e.view(client, e.Start(client, "one", key, order{ID: key}))
		return v.Rows[0].Publication == 0 && v.Rows[0].NextAt <= v.Started
	})
}

// T5, F9: a process that starts while NATS is away does not give up: it takes work
// when NATS is there.
func TestF9ProcessStartsWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false)
	client := e.client()
	e.Deploy(client, oneStep("charge"))
	require.NoError(t, e.NATS.Shutdown())
	job := e.Start(client, "one", "order-1", order{ID: "1"})
	reg := workers.New()
	workers.Handle(reg, "charge", func(_ context.Context, in order) (map[string]string, error) {
		return map[string]string{"receipt": in.ID}, nil
	})
	e.run(reg)
	e.eventually("the process has looked for its streams", func() bool {
		return strings.Contains(e.log.String(), "the streams cannot be made yet")
	})
	require.NoError(t, e.NATS.Restart(t.Context()))
	_, err := e.Wait(client, job)
	require.NoError(t, err)
	e.Verify()
}
