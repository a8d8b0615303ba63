package nats

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/transporttest"
	"github.com/quipu-journal/quipu/transport"
)

// O4: what waits for a topic, whether anybody has ever served it or not, and the lanes that
// nobody pulls.
func TestO4Queues(t *testing.T) {
	e := newEngines(t, Config{Lanes: 3})
	b, err := Open(t.Context(), e.cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	require.Eventually(t, func() bool { return b.Answers(t.Context()) == nil }, pinPatience, time.Millisecond)
	none, err := b.Queues(t.Context())
	require.NoError(t, err)
	require.Equal(t, Queues{Unpulled: 3}, none, "without streams")
	require.NoError(t, b.Ensure(t.Context()))
	send := func(topic string, n int) {
		for range n {
			e.sent++
			m := transport.Message{
				To:     transport.ToWork(topic),
				Header: transport.Header{GUID: [16]byte{2, byte(e.sent)}, Publication: 1, Turn: 1},
			}
			require.NoError(t, transporttest.Publish(t.Context(), b, m))
		}
	}
	send("never.served", 2)
	send("served", 4)
	taken := make(chan transport.Delivery, 4)
	go func() {
		_ = b.Consume(t.Context(), transport.ToWork("served"), 1, func(d transport.Delivery) { taken <- d })
	}()
	first := devtest.Await(t, "the first message", taken)
	q, err := b.Queues(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, q.Unpulled)
	require.Len(t, q.Topics, 2)
	require.Equal(t, []any{"served", int64(3)}, []any{q.Topics[0].Topic, q.Topics[0].Queued}, "without what a process has")
	require.Equal(t, []any{"never.served", int64(2)}, []any{q.Topics[1].Topic, q.Topics[1].Queued})
	require.Equal(t, []bool{true, false}, []bool{q.Topics[0].Pulled, q.Topics[1].Pulled}, "somebody takes those of one topic")
	require.Positive(t, q.Topics[0].Oldest)
	require.Greater(t, q.Topics[1].Oldest, q.Topics[0].Oldest)
	require.NoError(t, first.Ack())

	_, stop := e.start("a", so(1), nil)
	require.Eventually(t, func() bool {
		q, err := b.Queues(t.Context())
		return err == nil && q.Unpulled == 0
	}, pinPatience, 10*time.Millisecond)
	stop()
	require.Eventually(t, func() bool {
		q, err := b.Queues(t.Context())
		return err == nil && q.Unpulled == 3
	}, pinPatience, 10*time.Millisecond)
}
