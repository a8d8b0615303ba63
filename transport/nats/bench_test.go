package nats_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

func benchBus(b *testing.B) *nats.Bus {
	b.Helper()
	cfg := config(devtest.NATS(b))
	cfg.MaxBytes, cfg.MaxInFlight = 1<<30, 0
	bus, err := nats.Open(b.Context(), cfg)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, bus.Close()) })
	require.NoError(b, bus.Ensure(b.Context()))
	return bus
}

// fresh makes a message with its own id.
func fresh(to transport.Destination, n int) transport.Message {
	m := transport.Message{To: to, Header: transport.Header{Publication: 1, Epoch: 1, OriginSeq: int64(n), OriginSession: [16]byte{1}, PublishedAt: 1}}
	for i := range 8 {
		m.Header.GUID[i+1] = byte(n >> (8 * i))
	}
	m.Header.GUID[0] = 0xbb
	return m
}

// BenchmarkThroughput publishes, pulls and acks messages in batches, in one process with
// the server.
func BenchmarkThroughput(b *testing.B) {
	bus := benchBus(b)
	to := transport.ToLane(0)
	finished := make(chan struct{})
	left := b.N
	go func() {
		_ = bus.Consume(b.Context(), to, 512, func(d transport.Delivery) {
			_ = d.Ack()
			if left--; left == 0 {
				close(finished)
			}
		})
	}()
	b.ResetTimer()
	const batch = 100
	for n := 0; n < b.N; n += batch {
		msgs := make([]transport.Message, 0, batch)
		for i := n; i < min(n+batch, b.N); i++ {
			msgs = append(msgs, fresh(to, i))
		}
		require.NoError(b, bus.Send(b.Context(), msgs, nil))
	}
	<-finished
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
}

// BenchmarkOneAtATime does so with one message at a time, with an open pull.
func BenchmarkOneAtATime(b *testing.B) {
	bus := benchBus(b)
	to := transport.ToLane(0)
	came := make(chan struct{})
	go func() {
		_ = bus.Consume(b.Context(), to, 64, func(d transport.Delivery) {
			_ = d.Ack()
			came <- struct{}{}
		})
	}()
	n := 0
	for b.Loop() {
		require.NoError(b, bus.Send(b.Context(), []transport.Message{fresh(to, n)}, nil))
		<-came
		n++
	}
}
