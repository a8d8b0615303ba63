package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/engine"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	busmem "github.com/quipu-journal/quipu/transport/memory"
	"github.com/quipu-journal/quipu/workers"
)

const alone = `
flow: alone
version: "1"
output: {got: "${ work.output }"}
activities:
  start: {type: trigger}
  work: {type: worker, topic: t.work, input: {}}
transitions:
  start: [work]
`

// W7: a request that was handed over is held by its run: a handler that takes longer
// than the resend time, and than the lease, runs once.
func TestW7AHandlerLongerThanTheResendTimeRunsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		reg := workers.New()
		workers.Handle(reg, "t.work", func(ctx context.Context, _ struct{}) (int, error) {
			runs.Add(1)
			select {
			case <-time.After(30 * time.Second):
				return 1, nil
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		})
		r := start(t, withLocal(engine.Config{Resend: time.Second}), busmem.Config{}, nil, reg)
		r.deploy(alone)
		synctest.Wait() // the workers serve their topics
		id := r.publish("alone", "k", `{}`)
		synctest.Wait()
		require.EqualValues(t, 1, runs.Load())
		require.Zero(t, r.bus.Len(transport.ToWork("t.work")), "it went by memory")
		row := r.view(id).Rows[0]
		require.NotEmpty(t, row.Holder)
		require.EqualValues(t, 1, row.Fence)
		r.ended([]journal.JobID{id})
		r.completed([]journal.JobID{id}, `{"got": 1}`)
		require.EqualValues(t, 1, runs.Load())
		r.close()
	})
}

// W7: a request that was taken, and whose topic nobody serves here any more, is handed
// back: its row sends it by the bus.
func TestW7WhatIsNotServedHereGoesByTheBus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := workers.New()
		workers.Handle(reg, "t.other", func(context.Context, struct{}) (int, error) { return 1, nil })
		cfg := engine.Config{Sweep: 50 * time.Millisecond, Local: handsOver{lies: true}}
		r := start(t, cfg, busmem.Config{}, nil, reg)
		r.deploy(alone)
		id := r.publish("alone", "k", `{}`)
		synctest.Wait()
		require.Empty(t, r.view(id).Rows[0].Holder, "it was handed back")
		time.Sleep(time.Second) // the bubble's clock
		require.Equal(t, 1, r.bus.Len(transport.ToWork("t.work")))
		require.Equal(t, 2, r.view(id).Rows[0].Publication)
		r.close()
	})
}
