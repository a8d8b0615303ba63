package nats

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/transporttest"
	"github.com/quipu-journal/quipu/transport"
)

// T5, F11: a reconnect leaves no pull request of an earlier binding on the server. It
// would take every other message, which then comes again only after the ack wait.
func TestF11ReconnectLeavesNoPull(t *testing.T) {
	t.Parallel()
	const space, messages, crossed = "rebind", 30, 2 // that many may meet the old connection in the server
	server := devtest.NATS(t)
	bus, err := Open(t.Context(), Config{URL: server.URL(), Space: space, MaxBytes: 16 << 20, LaneAckWait: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bus.Close()) })
	require.NoError(t, bus.Ensure(t.Context()))
	lane := transport.ToLane(3)
	counts := make(chan int, messages)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- bus.Consume(ctx, lane, 8, func(d transport.Delivery) {
			_ = d.Ack()
			counts <- d.Count()
		})
	}()
	t.Cleanup(func() { cancel(); require.NoError(t, devtest.Await(t, "the end of the consumer", ended)) })
	js, err := jetstream.New(bus.nc)
	require.NoError(t, err)
	waits := func() bool {
		c, err := js.Consumer(t.Context(), "QUIPU_"+space+"_LANES", durableName(lane))
		return err == nil && c.CachedInfo().NumWaiting > 0
	}
	for range 5 {
		require.Eventually(t, waits, 20*time.Second, 10*time.Millisecond)
		breaks := bus.link.breaks()
		require.NoError(t, bus.nc.ForceReconnect())
		devtest.Await(t, "the break of the connection", breaks)
	}
	require.NoError(t, bus.link.wait(t.Context()))
	require.Eventually(t, waits, 20*time.Second, 10*time.Millisecond)
	again := 0
	for n := range byte(messages) {
		m := transport.Message{To: lane, Header: transport.Header{GUID: [16]byte{0xbb, n}, Publication: 1}}
		require.NoError(t, transporttest.Publish(t.Context(), bus, m))
		if devtest.Await(t, "a message", counts) > 1 {
			again++
		}
	}
	require.LessOrEqual(t, again, crossed, "messages that were given to bindings which are gone")
}
