package nats_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/dev"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

// T2, F11: a look whose answer is lost ends soon, because the sweep that waits for it
// sends nothing meanwhile.
func TestT2ALookIsBounded(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	address, deaf := relay(t, server)
	cfg.InProcess, cfg.URL = nil, address
	bus, err := nats.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = bus.Close() }) // it cannot flush
	require.NoError(t, bus.Ensure(t.Context()))
	_, _, err = bus.Oldest(t.Context(), transport.ToLane(1))
	require.NoError(t, err)
	deaf.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _, err = bus.Oldest(ctx, transport.ToLane(1))
	require.ErrorIs(t, err, transport.ErrUnavailable)
	require.NoError(t, ctx.Err(), "it waited as long as its caller would")
}

// relay is an address in front of the server; a client that is deaf receives nothing from
// it.
func relay(t *testing.T, server *dev.NATS) (address string, deaf *atomic.Bool) {
	t.Helper()
	deaf = &atomic.Bool{}
	u, err := url.Parse(server.URL())
	require.NoError(t, err)
	upstream := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u.Host = l.Addr().String()
	var group sync.WaitGroup
	group.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", upstream)
			if err != nil {
				_ = client.Close()
				continue
			}
			t.Cleanup(func() { _ = client.Close(); _ = back.Close() })
			group.Go(func() { _, _ = io.Copy(back, client) })
			group.Go(func() { _, _ = io.Copy(hearing{client, deaf}, back) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); group.Wait() })
	return u.String(), deaf
}

// hearing passes on what is written, unless it is deaf.
type hearing struct {
	io.Writer
	deaf *atomic.Bool
}

func (h hearing) Write(b []byte) (int, error) {
	if h.deaf.Load() {
		return len(b), nil
	}
	return h.Writer.Write(b)
}
