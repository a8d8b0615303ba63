package nats_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

// F10: a stream that was made while the server still removed one of the same name loses
// its directory. A process that starts then makes it again, and the space works without
// an operator.
func TestF10AStreamWithoutItsDirectoryIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := dev.StartNATS(t.Context(), dir, dev.NATSOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Shutdown()) })
	open := func(wait time.Duration) *nats.Bus {
		bus, err := nats.Open(t.Context(),
			nats.Config{URL: server.URL(), Space: "shop", Lanes: 2, LaneAckWait: wait, WorkAckWait: wait})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, bus.Close()) })
		return bus
	}
	first := open(10 * time.Second)
	require.NoError(t, first.Ensure(t.Context()))
	for _, name := range []string{"QUIPU_shop_LANES", "QUIPU_shop_START", "QUIPU_shop_WORK"} {
		found, err := filepath.Glob(filepath.Join(dir, "*", "*", "streams", name))
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.NoError(t, os.RemoveAll(found[0]))
	}
	second := open(9 * time.Second) // other settings make the server write
	require.NoError(t, second.Ensure(t.Context()))
	came := arrivals(t, second, transport.ToWork("charge"))
	requirePublish(t, second, message(transport.ToWork("charge"), 1))
	requireArrival(t, came, 1)
}
