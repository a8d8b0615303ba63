package wire

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
	"github.com/quipu-journal/quipu/transport/transporttest"
)

const (
	space    = "shop"
	topic    = "payments.charge"
	patience = 30 * time.Second
)

// rights are those that the document gives a worker.
func rights(t *testing.T) *natsserver.Permissions {
	t.Helper()
	text, err := os.ReadFile("../../docs/wire.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "\n## What it may do on NATS\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	publish, subscribe, ok := strings.Cut(section, "Subscribe:")
	require.True(t, ok)
	subjects := func(text string) (out []string) {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
			out = append(out, strings.ReplaceAll(m[1], "SPACE", space))
		}
		return out
	}
	return &natsserver.Permissions{
		Publish:   &natsserver.SubjectPermission{Allow: subjects(publish)},
		Subscribe: &natsserver.SubjectPermission{Allow: subjects(subscribe)},
	}
}

func serve(t *testing.T) (url string) {
	t.Helper()
	s, err := natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		Users: []*natsserver.User{{Username: "engine", Password: "e"}, {Username: "worker", Password: "w", Permissions: rights(t)}},
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(patience))
	return s.ClientURL()
}

// T6: the rights that docs/wire.md names are enough to make the consumer, pull,
// keep, answer and ack, and for no more.
func TestT6RightsAsStated(t *testing.T) {
	t.Parallel()
	url := serve(t)
	bus, err := nats.Open(t.Context(), nats.Config{URL: strings.Replace(url, "//", "//engine:e@", 1), Space: space})
	require.NoError(t, err)
	defer func() { require.NoError(t, bus.Close()) }()
	require.Eventually(t, func() bool { return bus.Ensure(t.Context()) == nil }, patience, 10*time.Millisecond)
	require.NoError(t, transporttest.Publish(t.Context(), bus, transport.Message{
		To: transport.ToWork(topic), Header: transport.Header{GUID: [16]byte{1}, Turn: 1, Publication: 1},
	}))

	nc, err := natsgo.Connect(url, natsgo.UserInfo("worker", "w"), natsgo.ErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) {}))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	c, err := js.CreateConsumer(t.Context(), "QUIPU_"+space+"_WORK", jetstream.ConsumerConfig{
		Durable: "work-payments=charge", FilterSubject: "quipu." + space + ".work." + topic,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: patience, MaxDeliver: -1, MaxAckPending: 65536, MaxWaiting: 4096,
	})
	require.NoError(t, err)
	_, err = c.Info(t.Context())
	require.NoError(t, err)
	m, err := c.Next(jetstream.FetchMaxWait(patience))
	require.NoError(t, err)
	require.NoError(t, m.InProgress())
	_, err = js.Publish(t.Context(), "quipu."+space+".lane.3", nil)
	require.NoError(t, err)
	require.NoError(t, m.DoubleAck(t.Context()), "the server has it")
	require.NoError(t, nc.LastError(), "nothing was refused so far")

	for _, foreign := range []string{
		"quipu." + space + ".work." + topic, "quipu." + space + ".start", "quipu.other.lane.3",
		"$JS.API.STREAM.DELETE.QUIPU_" + space + "_WORK", "$JS.API.CONSUMER.MSG.NEXT.QUIPU_" + space + "_LANES.lane-3",
	} {
		require.NoError(t, nc.Publish(foreign, nil))
		require.NoError(t, nc.Flush())
		require.ErrorContains(t, nc.LastError(), "permissions violation", foreign)
		require.ErrorContains(t, nc.LastError(), foreign)
	}
}
