package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
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

// W7: the run holds a request that was handed over: a handler that takes longer than the resend
// time and the lease runs once.
func TestW7AHandlerLongerThanTheResendTimeRunsOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
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
		r := start(t, withLocal(engine.Config{Resend: time.Second}), membus.Config{}, nil, reg)
		r.deploy(alone)
		synctest.Wait() // the workers serve their topics
		id := r.publish("alone", "k", `{}`)
		synctest.Wait()
		require.EqualValues(t, 1, runs.Load())
		require.Zero(t, r.bus.Len(transport.ToWork("t.work")), "it went by memory")
		row := r.view(id).Rows[0]
		require.NotEmpty(t, row.Holder)
		require.EqualValues(t, 1, row.Fence)
		r.completed([]journal.JobID{id}, `{"got": 1}`)
		require.EqualValues(t, 1, runs.Load())
	})
}

// W7: a function that is woken is handed over, too: without a server, and without a lease of its own.
func TestW7AWokenFunctionIsHandedOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var ends atomic.Int64
		reg := workers.New()
		workers.HandleDurable(reg, "t.work", func(ctx context.Context, _ struct{}) (int, error) {
			if err := workers.Sleep(ctx, "night", time.Hour); err != nil {
				return 0, err
			}
			ends.Add(1)
			<-time.After(time.Minute)
			return 1, nil
		})
		r := start(t, withLocal(engine.Config{}), membus.Config{}, nil, reg)
		r.deploy(alone)
		synctest.Wait()
		id := r.publish("alone", "k", `{}`)
		require.Eventually(t, func() bool { return ends.Load() == 1 }, 2*time.Hour, time.Second)
		synctest.Wait()
		require.Zero(t, r.bus.Len(transport.ToWork("t.work")), "it went by memory")
		row := r.view(id).Rows[0]
		require.NotEmpty(t, row.Holder)
		require.EqualValues(t, 2, row.Fence, "a run, a fence")
		r.completed([]journal.JobID{id}, `{"got": 1}`)
		require.EqualValues(t, 1, ends.Load())
	})
}

// W7: a taken request whose topic nobody serves here any more is handed back: its row sends it
// by the bus.
func TestW7WhatIsNotServedHereGoesByTheBus(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		reg := workers.New()
		workers.Handle(reg, "t.other", func(context.Context, struct{}) (int, error) { return 1, nil })
		cfg := engine.Config{Sweep: 50 * time.Millisecond, Local: handsOver{lies: true}}
		r := start(t, cfg, membus.Config{}, nil, reg)
		r.deploy(alone)
		id := r.publish("alone", "k", `{}`)
		synctest.Wait()
		require.Empty(t, r.view(id).Rows[0].Holder, "it was handed back")
		time.Sleep(time.Second) // the bubble's clock
		require.Equal(t, 1, r.bus.Len(transport.ToWork("t.work")))
		require.Equal(t, 2, r.view(id).Rows[0].Publication)
	})
}

// W7, T2: a request that is handed back is sent at once, whatever else is in its topic's queue.
func TestW7WhatIsHandedBackPassesABacklog(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cfg := engine.Config{Sweep: 50 * time.Millisecond, Local: handsOver{lies: true}}
		r := start(t, cfg, membus.Config{}, nil, workers.New())
		r.deploy(alone)
		old := transport.Message{To: transport.ToWork("t.work"), Header: transport.Header{
			GUID: [16]byte{1}, Publication: 1, Turn: 1, Epoch: 1, PublishedAt: time.Now().UnixMicro(),
		}}
		require.NoError(t, r.bus.Send(context.Background(), []transport.Message{old}, nil))
		id := r.publish("alone", "k", `{}`)
		time.Sleep(time.Second) // the bubble's clock
		require.Equal(t, 2, r.view(id).Rows[0].Publication)
	})
}

const few = `
flow: few
version: "1"
activities:
  start: {type: trigger}
  work: {type: worker, topic: t.work, each: "[1, 2, 3, 4, 5]", parallel: 1, input: "${ item }"}
transitions:
  start: [work]
`

// W6, W7: an element that a decision on a hot state releases is sent with that commit, although
// the clock has gone on. This test uses a real clock.
func TestW6AReleasedElementIsSentAtOnce(t *testing.T) {
	t.Parallel()
	for name, cfg := range modes {
		if cfg.Stepwise {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := workers.New()
			workers.Handle(reg, "t.work", func(context.Context, int) (int, error) { return 1, nil })
			cfg.Resend = time.Hour
			r := start(t, cfg, membus.Config{}, nil, reg)
			r.deploy(few)
			id := r.publish("few", "k", `{}`)
			require.Eventually(t, func() bool {
				return r.view(id).State == journal.JobCompleted
			}, 20*time.Second, time.Millisecond)
			for _, i := range r.view(id).Instances {
				require.Zero(t, i.Open)
			}
		})
	}
}
