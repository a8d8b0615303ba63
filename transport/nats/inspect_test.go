package nats_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/transport"
)

// S5: what somebody changes of a consumer while it is in use is put right, a pause until 2099
// included, or told, where the server cannot change it.
func TestS5ConsumersArePutRight(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	_, js := client(t, server)
	cfg := config(server)
	bus := open(t, cfg)
	require.NoError(t, bus.Ensure(t.Context()))
	ours := map[string]string{streams(cfg)[0]: "lane-3", streams(cfg)[1]: "start", streams(cfg)[2]: "work-pay=charge"}
	for from, name := range map[transport.Destination]string{
		transport.ToLane(3): streams(cfg)[0], transport.ToStart(): streams(cfg)[1], transport.ToWork("pay.charge"): streams(cfg)[2],
	} {
		came := arrivals(t, bus, from)
		requirePublish(t, bus, message(from, 1))
		requireArrival(t, came, 1)
		consumer := ours[name]
		_, err := js.PauseConsumer(t.Context(), name, consumer, time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
		require.NoError(t, err)
		requirePublish(t, bus, message(from, 2))
		require.NoError(t, bus.Inspect(t.Context()))
		requireArrival(t, came, 2)

		c, err := js.Consumer(t.Context(), name, consumer)
		require.NoError(t, err)
		theirs := c.CachedInfo().Config
		theirs.MaxAckPending, theirs.MaxDeliver, theirs.HeadersOnly = 1, 2, true
		_, err = js.UpdateConsumer(t.Context(), name, theirs)
		require.NoError(t, err)
		require.NoError(t, bus.Inspect(t.Context()))
		c, err = js.Consumer(t.Context(), name, consumer)
		require.NoError(t, err)
		is := c.CachedInfo().Config
		require.Equal(t, []any{65536, -1, false}, []any{is.MaxAckPending, is.MaxDeliver, is.HeadersOnly})

		require.NoError(t, js.DeleteConsumer(t.Context(), name, consumer))
		requirePublish(t, bus, message(from, 3))
		requireArrival(t, came, 3)
	}
	require.Empty(t, bus.Troubles())

	name := streams(cfg)[2]
	require.NoError(t, js.DeleteConsumer(t.Context(), name, ours[name]))
	_, err := js.CreateConsumer(t.Context(), name, jetstream.ConsumerConfig{
		Durable: "work-other", FilterSubject: "quipu." + cfg.Space + ".work.other", MaxWaiting: 1, AckPolicy: jetstream.AckExplicitPolicy,
	})
	require.NoError(t, err)
	require.NoError(t, bus.Inspect(t.Context()))
	x := troubled(t, bus, transport.TroubleConsumer)
	require.Equal(t, "work.other", x.Queue)
	require.Contains(t, x.Text, "max waiting is 1, must be at least 4096")
	require.NoError(t, js.DeleteConsumer(t.Context(), name, "work-other"))
	require.NoError(t, bus.Inspect(t.Context()))
	require.Empty(t, bus.Troubles(), "it is not there any more")
}

// S5: what somebody changes of a stream while it is in use is put right, or told.
func TestS5StreamsArePutRight(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	_, js := client(t, server)
	cfg := config(server)
	bus := open(t, cfg)
	require.NoError(t, bus.Ensure(t.Context()))
	change := func(f func(*jetstream.StreamConfig)) {
		theirs := settings(t, js, streams(cfg)[2])
		f(&theirs)
		_, err := js.UpdateStream(t.Context(), theirs)
		require.NoError(t, err)
	}
	change(func(c *jetstream.StreamConfig) { c.MaxBytes, c.Subjects = 1<<10, []string{"else." + cfg.Space} })
	require.NoError(t, bus.Inspect(t.Context()))
	is := settings(t, js, streams(cfg)[2])
	require.Equal(t, cfg.MaxBytes, is.MaxBytes)
	require.Contains(t, is.Subjects, "quipu."+cfg.Space+".work.>")
	require.Empty(t, bus.Troubles())

	change(func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 3 })
	require.NoError(t, bus.Inspect(t.Context()))
	x := troubled(t, bus, transport.TroubleStream)
	require.True(t, x.Stops())
	require.Contains(t, x.Text, "max messages per subject is 3, must be unlimited")
	change(func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = -1 })
	require.NoError(t, bus.Inspect(t.Context()))
	require.Empty(t, bus.Troubles())

	change(func(c *jetstream.StreamConfig) { c.Sealed = true })
	require.NoError(t, bus.Inspect(t.Context()))
	require.Contains(t, troubled(t, bus, transport.TroubleStream).Text, "sealed is true")
}
