package dev_test

import (
	"fmt"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quipu-journal/quipu/internal/dev"
)

// A stream still exists after a restart of the server, and after a new server on the same
// directory.
func TestNATSKeepsItsStreams(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n, err := dev.StartNATS(t.Context(), dir, dev.NATSOptions{})
	require.NoError(t, err)
	url := n.URL()
	nc := connect(t, natsgo.InProcessServer(n))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(),
		jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Storage: jetstream.FileStorage})
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "s", []byte("kept"))
	require.NoError(t, err)
	nc.Close()

	_, err = dev.StartNATS(t.Context(), dir, dev.NATSOptions{})
	var locked *dev.LockedError
	require.ErrorAs(t, err, &locked, "a directory has one server")

	require.NoError(t, n.Restart(t.Context()))
	require.Equal(t, url, n.URL(), "clients find a restarted server where it was")
	requireKept(t, connect(t, natsgo.InProcessServer(n)))
	require.NoError(t, n.Shutdown())
	require.NoError(t, n.Shutdown(), "idempotent")

	n, err = dev.StartNATS(t.Context(), dir, dev.NATSOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Shutdown()) })
	nc, err = natsgo.Connect(n.URL())
	require.NoError(t, err)
	defer nc.Close()
	requireKept(t, nc)
}

// A server that gets requests for streams while it ends leaves no goroutine that writes to the
// directory, which the next server may use. The test runs alone, since others have their own
// servers.
func TestNATSEndsWhatItIsAskedFor(t *testing.T) {
	for range 5 {
		before := goleak.IgnoreCurrent()
		n, err := dev.StartNATS(t.Context(), t.TempDir(), dev.NATSOptions{})
		require.NoError(t, err)
		nc := connect(t, natsgo.InProcessServer(n))
		for i := range 40 {
			body := fmt.Sprintf(`{"name":"S%d","subjects":["s%d"],"storage":"file","retention":"limits"}`, i, i)
			require.NoError(t, nc.PublishRequest(fmt.Sprintf("$JS.API.STREAM.CREATE.S%d", i), nc.NewInbox(), []byte(body)))
		}
		require.NoError(t, nc.Flush())
		require.NoError(t, n.Shutdown())
		nc.Close()
		goleak.VerifyNone(t, before)
	}
}

func connect(t *testing.T, opt natsgo.Option) *natsgo.Conn {
	t.Helper()
	nc, err := natsgo.Connect("", opt)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func requireKept(t *testing.T, nc *natsgo.Conn) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), "S")
	require.NoError(t, err)
	msg, err := s.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "kept", string(msg.Data))
}
