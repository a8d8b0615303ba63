package nats_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

// F9, T2: a server that stops between an ack and the removal of its message comes back
// with both, and never delivers the message. The look before a re-send ignores it, and
// the next binding removes it. A message that was delivered but not acked stays.
func TestF9AckedMessageThatIsStillThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := dev.StartNATS(t.Context(), dir, dev.NATSOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Shutdown()) })
	bus := open(t, nats.Config{URL: server.URL(), Space: "shop", Lanes: 1, LaneAckWait: time.Second})
	require.NoError(t, bus.Ensure(t.Context()))
	lane := transport.ToLane(0)
	for n := range byte(3) {
		m := message(lane, n)
		m.Header.PublishedAt = int64(n) + 100
		requirePublish(t, bus, m)
	}
	full := filepath.Join(t.TempDir(), "msgs")
	msgs := messagesOf(t, dir, "QUIPU_shop_LANES")
	require.NoError(t, server.Shutdown())
	require.NoError(t, os.CopyFS(full, os.DirFS(msgs)))
	require.NoError(t, server.Restart(t.Context()))

	acked := make(chan byte, 3)
	stop := consume(t, bus, lane, 3, func(d transport.Delivery) {
		if n := d.Message().Header.GUID[1]; n != 1 && d.Ack() == nil {
			acked <- n
		}
	})
	require.ElementsMatch(t, []byte{0, 2}, []byte{devtest.Await(t, "an ack", acked), devtest.Await(t, "the other ack", acked)})
	stop()
	_, js := client(t, server)
	stream, err := js.Stream(t.Context(), "QUIPU_shop_LANES")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return left(t, stream) == 1 }, patience, 5*time.Millisecond)
	require.NoError(t, server.Shutdown())
	require.NoError(t, os.RemoveAll(msgs))
	require.NoError(t, os.CopyFS(msgs, os.DirFS(full)))
	require.NoError(t, server.Restart(t.Context()))

	require.Eventually(t, func() bool { return left(t, stream) == 3 }, patience, 5*time.Millisecond, "the server removed what it had acked by itself")
	require.Eventually(t, func() bool { return oldest(t, bus, lane) >= 0 }, patience, 5*time.Millisecond)
	require.Equal(t, int64(101), oldest(t, bus, lane), "the one that was not acked")
	requireArrival(t, arrivals(t, bus, lane), 1)
	require.Eventually(t, func() bool { return oldest(t, bus, lane) == -1 }, patience, 5*time.Millisecond)
	require.NoError(t, bus.Ensure(t.Context()))
	require.Zero(t, left(t, stream))
}

// messagesOf is the directory in which a server keeps the messages of a stream.
func messagesOf(t *testing.T, dir, stream string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", "streams", stream, "msgs"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// left is how many messages the stream holds.
func left(t *testing.T, stream jetstream.Stream) uint64 {
	t.Helper()
	info, err := stream.Info(t.Context())
	if err != nil {
		return 0 // while the client reconnects
	}
	return info.State.Msgs
}

// oldest is the PublishedAt of the oldest message, -1 if there is none, -2 if that is not
// known.
func oldest(t *testing.T, bus *nats.Bus, d transport.Destination) int64 {
	t.Helper()
	at, found, err := bus.Oldest(t.Context(), d)
	switch {
	case err != nil:
		return -2
	case !found:
		return -1
	}
	return at
}
