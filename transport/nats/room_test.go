package nats_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/transporttest"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

// bulk numbers them.
var bulk atomic.Uint64

// bulky are n requests to a topic, with bodies of that size.
func bulky(topic string, n, size int) []transport.Message {
	msgs := make([]transport.Message, n)
	for i := range msgs {
		msgs[i] = message(transport.ToWork(topic), 1)
		binary.BigEndian.PutUint64(msgs[i].Header.GUID[8:], bulk.Add(1))
		msgs[i].Body = []byte(strings.Repeat("x", size))
	}
	return msgs
}

// outcomes sends messages and counts those that were sent and those that were refused.
func outcomes(t *testing.T, bus *nats.Bus, msgs []transport.Message) (sent, refused int) {
	t.Helper()
	var mu sync.Mutex
	all := make(chan struct{})
	left := len(msgs)
	require.NoError(t, bus.Send(t.Context(), msgs, func(_ int, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			sent++
		case errors.Is(err, transport.ErrFull):
			refused++
		default:
			t.Errorf("unexpected: %v", err)
		}
		if left--; left == 0 {
			close(all)
		}
	}))
	devtest.Await(t, "the outcomes", all)
	return sent, refused
}

// troubled waits for the only trouble of a bus.
func troubled(t *testing.T, bus *nats.Bus, kind transport.TroubleKind) transport.Trouble {
	t.Helper()
	var x transport.Trouble
	require.Eventually(t, func() bool {
		all := bus.Troubles()
		if len(all) != 1 || all[0].Kind != kind {
			return false
		}
		x = all[0]
		return true
	}, devtest.Patience, 5*time.Millisecond)
	return x
}

func untroubled(t *testing.T, bus *nats.Bus) {
	t.Helper()
	require.Eventually(t, func() bool {
		return len(bus.Troubles()) == 0
	}, devtest.Patience, 5*time.Millisecond, "%v", bus.Troubles())
}

// T5: topics that nobody serves do not take the room of the others, whatever the sizes of their
// messages. Who is refused has room again as soon as some are taken.
func TestT5OneTopicDoesNotTakeTheRoomOfTheOthers(t *testing.T) {
	t.Parallel()
	cfg := config(devtest.NATS(t))
	cfg.MaxBytes = 1 << 20
	bus := open(t, cfg)
	require.NoError(t, bus.Ensure(t.Context()))
	for _, topic := range []string{"one", "other", "third"} {
		_, refused := outcomes(t, bus, bulky(topic, 150, 20_000))
		require.Positive(t, refused, topic)
	}
	for i := range 20 {
		topic := fmt.Sprintf("new.%d", i)
		sent, _ := outcomes(t, bus, bulky(topic, 1, 3000))
		require.Equal(t, 1, sent, "a topic that has nothing in the stream is not refused: %s", topic)
	}
	var x transport.Trouble
	require.Eventually(t, func() bool {
		outcomes(t, bus, bulky("one", 50, 20_000))
		all := bus.Troubles()
		i := slices.IndexFunc(all, func(x transport.Trouble) bool { return x.Name == "one" })
		if i >= 0 {
			x = all[i]
		}
		return i >= 0
	}, devtest.Patience, 10*time.Millisecond)
	require.Equal(t, []any{transport.TroubleRoom, "work.one", false}, []any{x.Kind, x.Queue, x.Stops()})
	require.Contains(t, x.Text, "QUIPU_"+cfg.Space+"_WORK")
	require.Contains(t, x.Text, "of 1048576 bytes are taken")

	for _, topic := range []string{"one", "other", "third"} {
		go func() {
			_ = bus.Consume(t.Context(), transport.ToWork(topic), 10, func(d transport.Delivery) { _ = d.Ack() })
		}()
	}
	require.Eventually(t, func() bool {
		sent, _ := outcomes(t, bus, bulky("one", 1, 20_000))
		return sent == 1
	}, devtest.Patience, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		_, _ = outcomes(t, bus, bulky("one", 1, 20_000)) // what is refused looks
		return len(bus.Troubles()) == 0
	}, devtest.Patience, 100*time.Millisecond)
}

// T5: what somebody who does not look has put into the stream gives way: its rows send it again.
func TestT5AFullStreamGetsRoom(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	cfg.MaxBytes = 1 << 20
	bus := open(t, cfg)
	require.NoError(t, bus.Ensure(t.Context()))
	client := cfg
	client.LeaveStreams = true
	flood := open(t, client)
	require.NoError(t, flood.Reach(t.Context(), devtest.Patience))
	_, refused := outcomes(t, flood, bulky("flood", 150, 20_000))
	require.Positive(t, refused)
	x := troubled(t, flood, transport.TroubleRefused)
	require.True(t, x.Stops())
	require.Equal(t, []string{"QUIPU_" + cfg.Space + "_WORK", "work"}, []string{x.Name, x.Queue})
	require.Contains(t, x.Text, "maximum bytes exceeded")

	require.Eventually(t, func() bool {
		sent, _ := outcomes(t, bus, bulky("served", 1, 10_000))
		return sent == 1
	}, devtest.Patience, 20*time.Millisecond)
	untroubled(t, bus)
	require.Eventually(t, func() bool {
		sent, _ := outcomes(t, flood, bulky("served", 1, 10_000))
		return sent == 1
	}, devtest.Patience, 20*time.Millisecond)
	untroubled(t, flood)
}

// T5: a lane that is full is told of, and no longer once it takes messages.
func TestT5AFullLaneIsTold(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	_, js := client(t, server)
	cfg := config(server)
	bus := open(t, cfg)
	require.NoError(t, bus.Ensure(t.Context()))
	limit := func(bytes int64) {
		theirs := settings(t, js, streams(cfg)[0])
		theirs.MaxBytes = bytes
		_, err := js.UpdateStream(t.Context(), theirs)
		require.NoError(t, err)
	}
	limit(1)
	to := transport.ToLane(1)
	require.ErrorIs(t, transporttest.Publish(t.Context(), bus, message(to, 1)), transport.ErrFull)
	x := troubled(t, bus, transport.TroubleRefused)
	require.Equal(t, []string{streams(cfg)[0], "lane"}, []string{x.Name, x.Queue})
	limit(1 << 20)
	require.NoError(t, transporttest.Publish(t.Context(), bus, message(to, 1)))
	untroubled(t, bus)
}

// T9: what is in a lane that the space does not have any more goes.
func TestT9LanesThatAreNoneAreEmptied(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	_, js := client(t, server)
	cfg := config(server)
	bus := open(t, cfg)
	require.NoError(t, bus.Ensure(t.Context()))
	requirePublish(t, bus, message(transport.ToLane(cfg.Lanes), 1))
	requirePublish(t, bus, message(transport.ToLane(cfg.Lanes-1), 2))
	_, err := bus.RemoveStale(t.Context(), 0, func(context.Context, []transport.Message) ([]bool, error) {
		return nil, nil
	})
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), streams(cfg)[0])
	require.NoError(t, err)
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"quipu." + cfg.Space + ".lane.7": 1}, info.State.Subjects)
}
