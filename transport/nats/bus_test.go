package nats_test

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/transporttest"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

var spaces atomic.Int64

// config is a new space on a server, with limits for tests.
func config(server *dev.NATS) nats.Config {
	return nats.Config{
		InProcess:   server,
		Space:       fmt.Sprintf("test-%d", spaces.Add(1)),
		Lanes:       8,
		MaxBytes:    16 << 20,
		LaneAckWait: time.Second,
		WorkAckWait: time.Second,
		MaxInFlight: 16,
		Heartbeat:   500 * time.Millisecond,
		Log:         slog.New(slog.DiscardHandler),
	}
}

func open(t *testing.T, cfg nats.Config) *nats.Bus {
	t.Helper()
	bus, err := nats.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bus.Close()) })
	return bus
}

// client is a foreign connection to the same server.
func client(t *testing.T, server *dev.NATS) (*natsgo.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := natsgo.Connect("", natsgo.InProcessServer(server))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return nc, js
}

func streams(cfg nats.Config) []string {
	return []string{"QUIPU_" + cfg.Space + "_LANES", "QUIPU_" + cfg.Space + "_START", "QUIPU_" + cfg.Space + "_WORK"}
}

func TestBus(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	transporttest.Run(t, func(t *testing.T) transporttest.Setup {
		cfg := config(server)
		_, js := client(t, server)
		return transporttest.Setup{
			Bus: open(t, cfg), Other: open(t, cfg), AckWait: cfg.LaneAckWait, MaxInFlight: cfg.MaxInFlight,
			Wipe: func(t *testing.T) {
				for _, name := range streams(cfg) {
					if err := js.DeleteStream(t.Context(), name); !errors.Is(err, jetstream.ErrStreamNotFound) {
						require.NoError(t, err)
					}
				}
			},
			Inject: func(t *testing.T, to transport.Destination, headers map[string]string, body []byte) {
				msg := &natsgo.Msg{Subject: "quipu." + cfg.Space + "." + to.String(), Header: natsgo.Header{}, Data: body}
				for name, value := range headers {
					msg.Header.Set(name, value)
				}
				_, err := js.PublishMsg(t.Context(), msg)
				require.NoError(t, err)
			},
		}
	})
}

func TestMain(m *testing.M) { devtest.Main(m) }
