package nats_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/cut"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

// T2, F11: a look whose answer is lost ends soon, because the sweep that waits for it
// sends nothing meanwhile. A server that is silent is told of before its pings fail, until it answers.
func TestT2ALookIsBounded(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	u, err := url.Parse(server.URL())
	require.NoError(t, err)
	proxy := cut.New(t, u.Host)
	u.Host = proxy.Addr()
	cfg.InProcess, cfg.URL = nil, u.String()
	bus, err := nats.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = bus.Close() }) // it cannot flush
	require.NoError(t, bus.Ensure(t.Context()))
	_, _, err = bus.Oldest(t.Context(), transport.ToLane(1))
	require.NoError(t, err)
	proxy.Down()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _, err = bus.Oldest(ctx, transport.ToLane(1))
	require.ErrorIs(t, err, transport.ErrUnavailable)
	require.NoError(t, ctx.Err(), "it waited as long as its caller would")

	require.Empty(t, bus.Troubles())
	brief, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	require.Error(t, bus.Attest(brief, "an attestation"))
	for end := time.Now().Add(2 * nats.HouseTick); time.Now().Before(end); time.Sleep(nats.HouseTick / 20) {
		require.True(t, bus.Connected(), "its pings have failed")
		require.Len(t, bus.Troubles(), 1)
		require.Equal(t, transport.TroubleAway, bus.Troubles()[0].Kind)
		require.Contains(t, bus.Troubles()[0].Cause, proxy.Addr(), "which one")
	}
	proxy.Heal()
	require.Eventually(t, func() bool { return len(bus.Troubles()) == 0 }, time.Minute, 10*time.Millisecond)
}
