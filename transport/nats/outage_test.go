package nats_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/transporttest"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

const patience = 30 * time.Second

func message(to transport.Destination, n byte) transport.Message {
	return transport.Message{To: to, Header: transport.Header{GUID: [16]byte{0xaa, n}, Publication: 1}}
}

// arrivals acks incoming messages and returns their numbers.
func arrivals(t *testing.T, bus *nats.Bus, from transport.Destination) <-chan byte {
	t.Helper()
	came := make(chan byte, 100)
	consume(t, bus, from, 4, func(d transport.Delivery) {
		_ = d.Ack() // lost with the connection: it comes again
		came <- d.Message().Header.GUID[1]
	})
	return came
}

// consume consumes until the test ends or stop is called.
func consume(
	t *testing.T, bus *nats.Bus, from transport.Destination, slots int, handle func(transport.Delivery),
) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- bus.Consume(ctx, from, slots, handle) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, devtest.Await(t, "the end of the consumer", ended))
	})
	t.Cleanup(stop)
	return stop
}

// requireArrival skips redeliveries of earlier messages.
func requireArrival(t *testing.T, came <-chan byte, want byte) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case got := <-came:
			if got == want {
				return
			}
		case <-deadline:
			t.Fatalf("message %d did not come", want)
		}
	}
}

// requirePublish sends until there is a PubAck, as the sweeper does.
func requirePublish(t *testing.T, bus *nats.Bus, m transport.Message) {
	t.Helper()
	require.Eventually(t, func() bool {
		return transporttest.Publish(t.Context(), bus, m) == nil
	}, patience, 20*time.Millisecond)
}

// The bus starts before its server.
func TestOpenBeforeTheServer(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	require.NoError(t, server.Shutdown())
	bus := open(t, cfg)
	require.Positive(t, bus.MaxPayload())
	to := transport.ToLane(0)
	err := transporttest.Publish(t.Context(), bus, message(to, 1))
	require.ErrorIs(t, err, transport.ErrUnavailable)
	_, _, err = bus.Oldest(t.Context(), to)
	require.ErrorIs(t, err, transport.ErrUnavailable)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = bus.Preflight(ctx)
	require.ErrorIs(t, err, transport.ErrUnavailable)

	came := arrivals(t, bus, to)
	require.NoError(t, server.Restart(t.Context()))
	requirePublish(t, bus, message(to, 2))
	requireArrival(t, came, 2)
}

// A publish finds its stream gone, and no consumer makes it again.
func TestPublishMakesItsStreamAgain_T5(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	bus := open(t, cfg)
	_, js := client(t, server)
	require.NoError(t, transporttest.Publish(t.Context(), bus, message(transport.ToStart(), 1)),
		"not even Ensure was called")
	require.NoError(t, js.DeleteStream(t.Context(), streams(cfg)[1]))
	requirePublish(t, bus, message(transport.ToStart(), 2))
	require.NoError(t, bus.Ensure(t.Context()))
	requireArrival(t, arrivals(t, bus, transport.ToStart()), 2)
}

// T5: a full stream is backpressure and reports it; acks make room.
func TestFullStream_T5(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	cfg.MaxBytes = 1 << 20
	bus := open(t, cfg)
	require.NoError(t, bus.Ensure(t.Context()))
	to := transport.ToWork("big")
	var err error
	for n := byte(0); n < 100 && err == nil; n++ {
		m := message(to, n)
		m.Body = make([]byte, 100<<10)
		err = transporttest.Publish(t.Context(), bus, m)
	}
	require.ErrorIs(t, err, transport.ErrFull)
	require.NoError(t, transporttest.Publish(t.Context(), bus, message(transport.ToLane(0), 1)), "other streams have room")
	came := arrivals(t, bus, to)
	requireArrival(t, came, 0)
	m := message(to, 200)
	m.Body = make([]byte, 100<<10)
	requirePublish(t, bus, m)
	requireArrival(t, came, 200)
}

// Two buses ensure the same space at the same time, with running consumers.
func TestEnsureIsIdempotent_T5(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	one, two := open(t, cfg), open(t, cfg)
	errs := make(chan error, 6)
	for range cap(errs) / 2 {
		go func() { errs <- one.Ensure(t.Context()) }()
		go func() { errs <- two.Ensure(t.Context()) }()
	}
	for range cap(errs) {
		require.NoError(t, devtest.Await(t, "the end of an Ensure", errs))
	}
	_, js := client(t, server)
	for name, want := range map[string]int{streams(cfg)[0]: cfg.Lanes, streams(cfg)[1]: 1, streams(cfg)[2]: 0} {
		stream, err := js.Stream(t.Context(), name)
		require.NoError(t, err)
		got := stream.CachedInfo()
		require.Equal(t, want, got.State.Consumers, name)
		require.Equal(t, jetstream.WorkQueuePolicy, got.Config.Retention)
		require.Equal(t, jetstream.DiscardNew, got.Config.Discard)
		require.Equal(t, jetstream.FileStorage, got.Config.Storage)
		require.Equal(t, nats.DuplicateWindow, got.Config.Duplicates)
		require.Equal(t, cfg.MaxBytes, got.Config.MaxBytes)
	}
	consumer, err := js.Consumer(t.Context(), streams(cfg)[0], "lane-3")
	require.NoError(t, err)
	got := consumer.CachedInfo().Config
	require.Equal(t, jetstream.AckExplicitPolicy, got.AckPolicy)
	require.Equal(t, -1, got.MaxDeliver)
	require.Equal(t, nats.MaxAckPending, got.MaxAckPending)
	require.Equal(t, cfg.LaneAckWait, got.AckWait)
}

// Pull requests of an idle consumer expire, partly used, and are made again; the number
// of slots stays exact (T5).
func TestPullsExpire_T5(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	cfg.Heartbeat, cfg.PullExpires, cfg.LaneAckWait = 100*time.Millisecond, 200*time.Millisecond, patience
	bus := open(t, cfg)
	require.NoError(t, bus.Ensure(t.Context()))
	nc, _ := client(t, server)
	pulls, err := nc.SubscribeSync("$JS.API.CONSUMER.MSG.NEXT." + streams(cfg)[0] + ".lane-0")
	require.NoError(t, err)

	const slots = 5
	to := transport.ToLane(0)
	came := make(chan transport.Delivery, 2*slots)
	consume(t, bus, to, slots, func(d transport.Delivery) { came <- d })
	held := make([]transport.Delivery, 0, slots)
	for n := range byte(slots - 1) {
		for range 3 {
			_, err := pulls.NextMsg(patience)
			require.NoError(t, err, "a pull is open while slots are free")
		}
		requirePublish(t, bus, message(to, n))
		held = append(held, devtest.Await(t, "a message", came))
	}
	for n := range byte(3 * slots) {
		requirePublish(t, bus, message(to, 100+n))
	}
	held = append(held, devtest.Await(t, "a message", came))
	select {
	case <-came:
		t.Fatal("more unfinished deliveries than slots")
	case <-time.After(5 * cfg.PullExpires):
	}
	for _, d := range held {
		require.NoError(t, d.Ack())
	}
	for range slots {
		require.NoError(t, devtest.Await(t, "a message", came).Ack())
	}
}
