package membus_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/testkit/transporttest"
	"github.com/quipu-journal/quipu/transport"
)

func numbered(n int) []transport.Message {
	msgs := make([]transport.Message, n)
	for i := range msgs {
		msgs[i] = transport.Message{
			To: transport.ToLane(0), Header: transport.Header{GUID: [16]byte{1, byte(i >> 8), byte(i)}, Publication: 1},
		}
	}
	return msgs
}

// trace records what happened to each message.
type trace struct {
	acked, failed map[string]int
	order         []string
}

// run sends n messages through a bus in a bubble with its own clock, acks deliveries for
// a minute, and returns what happened.
func run(t *testing.T, cfg membus.Config, n int) trace {
	t.Helper()
	got := trace{acked: map[string]int{}, failed: map[string]int{}}
	synctest.Test(t, func(t *testing.T) {
		bus := membus.New(cfg)
		msgs := numbered(n)
		require.NoError(t, bus.Send(t.Context(), msgs, func(i int, err error) {
			if err != nil {
				require.ErrorIs(t, err, transport.ErrUnavailable)
				got.failed[msgs[i].ID()]++
			}
		}))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, bus.Consume(ctx, transport.ToLane(0), 4, func(d transport.Delivery) {
			got.acked[d.Message().ID()]++
			got.order = append(got.order, d.Message().ID())
			require.NoError(t, d.Ack())
		}))
		require.Zero(t, bus.Len(transport.ToLane(0)), "the last lost ack was given again")
		require.NoError(t, bus.Close())
	})
	return got
}

func TestFaultsAreTheSeeds(t *testing.T) {
	t.Parallel()
	cfg := membus.Config{Seed: 7, Loss: 0.2, Duplicate: 0.2, Reorder: 0.5, AckWait: time.Second}
	one, two := run(t, cfg, 300), run(t, cfg, 300)
	require.True(t, maps.Equal(one.acked, two.acked), "the same seed, the same faults")
	require.Equal(t, one.failed, two.failed)
	require.Equal(t, one.order, two.order)
	cfg.Seed++
	require.NotEqual(t, one.acked, run(t, cfg, 300).acked)
}

func TestLoss_P20(t *testing.T) {
	t.Parallel()
	const n = 1000
	got := run(t, membus.Config{Seed: 1, Loss: 0.25, AckWait: time.Second}, n)
	require.InDelta(t, n*3/4, len(got.acked), n/10, "a quarter never came")
	lied := 0
	for _, m := range numbered(n) {
		if got.acked[m.ID()] == 0 && got.failed[m.ID()] == 0 {
			lied++
		}
	}
	require.Positive(t, lied, "some of them with a PubAck")
	again := 0
	for _, times := range got.acked {
		again += times - 1
	}
	require.Positive(t, again, "lost acks bring a message again")
}

func TestDuplicateAndReorder_F12_F13(t *testing.T) {
	t.Parallel()
	const n = 500
	got := run(t, membus.Config{Seed: 3, Duplicate: 1}, n)
	require.Len(t, got.acked, n)
	for id, times := range got.acked {
		require.Equal(t, 2, times, id)
	}
	sent := make([]string, 0, n)
	for _, m := range numbered(n) {
		sent = append(sent, m.ID())
	}
	require.Equal(t, sent, run(t, membus.Config{}, n).order, "without faults in order")
	reordered := run(t, membus.Config{Seed: 3, Reorder: 0.5, MaxDelay: 10 * time.Second}, n).order
	require.NotEqual(t, sent, reordered)
	require.ElementsMatch(t, sent, reordered)
}

// A bus with the maximum of messages is full, and the window of message ids ends.
func TestLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := membus.New(membus.Config{MaxMessages: 2})
		msgs := numbered(3)
		err := transporttest.Publish(t.Context(), bus, msgs...)
		require.ErrorIs(t, err, transport.ErrFull)
		require.Equal(t, 2, bus.Len(transport.ToLane(0)))
		bus.Wipe()
		require.NoError(t, transporttest.Publish(t.Context(), bus, msgs[2:]...), "a refused message is no duplicate")
		require.NoError(t, transporttest.Publish(t.Context(), bus, msgs[2:]...))
		require.Equal(t, 1, bus.Len(transport.ToLane(0)))
		time.Sleep(membus.DuplicateWindow) // the bubble's time
		require.NoError(t, transporttest.Publish(t.Context(), bus, msgs[2:]...))
		require.Equal(t, 2, bus.Len(transport.ToLane(0)))
		require.NoError(t, bus.Close())
	})
}

// After Calm nothing more is lost, duplicated or delayed.
func TestCalm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := membus.New(membus.Config{Loss: 1, Duplicate: 1, Reorder: 1})
		msgs := numbered(3)
		require.NoError(t, bus.Send(t.Context(), msgs, nil))
		synctest.Wait()
		require.Zero(t, bus.Len(transport.ToLane(0)))
		bus.Calm()
		require.NoError(t, transporttest.Publish(t.Context(), bus, msgs...))
		require.Equal(t, 3, bus.Len(transport.ToLane(0)))
		require.NoError(t, bus.Close())
	})
}
