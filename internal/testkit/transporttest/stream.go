package transporttest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

func testOldest(t *testing.T, s Setup) {
	to, other := transport.ToLane(4), transport.ToLane(5)
	oldest := func(d transport.Destination) (int64, bool) {
		at, found, err := s.Bus.Oldest(t.Context(), d)
		require.NoError(t, err)
		return at, found
	}
	_, found := oldest(to)
	require.False(t, found)
	msgs := messages(to, 2)
	msgs[0].Header.PublishedAt, msgs[1].Header.PublishedAt = 100, 200
	publish(t, s, msgs[:1])
	publish(t, s, msgs[1:])
	_, found = oldest(other)
	require.False(t, found, "each destination for itself")
	requireOldest := func(want int64, why string) {
		t.Helper()
		at, found := oldest(to)
		require.True(t, found, why)
		require.Equal(t, want, at, why)
	}
	requireOldest(100, "undelivered")
	in := consume(t, s, to, 2)
	first, second := in.next(), in.next()
	if first.Message().ID() != msgs[0].ID() {
		first, second = second, first
	}
	requireOldest(100, "delivered and unfinished")
	require.NoError(t, first.Ack())
	require.Eventually(t, func() bool {
		at, found := oldest(to)
		return found && at == 200
	}, patience, 5*time.Millisecond)
	require.NoError(t, second.Nak(time.Hour))
	requireOldest(200, "handed back")

	publish(t, s, messages(other, 1))
	at, found := oldest(other)
	require.True(t, found)
	require.Zero(t, at, "unknown")
}

// testEnd ends a Consume that has deliveries in every state. Handled ones may still be
// finished; the others come to the next consumer.
func testEnd(t *testing.T, s Setup) {
	const total = 20
	to := transport.ToWork("end")
	msgs := messages(to, total)
	publish(t, s, msgs)
	blocked, release := make(chan transport.Delivery), make(chan struct{})
	in := consumeWith(t, s, to, total, func(d transport.Delivery) {
		blocked <- d
		<-release
	})
	held := soon(t, blocked, "no delivery")
	in.cancel()
	close(release)
	in.stop()
	require.NoError(t, held.Ack(), "after Consume has returned")
	next := consume(t, s, to, total)
	want := make(map[string]bool)
	for _, id := range ids(msgs) {
		want[id] = id != held.Message().ID()
	}
	for range total - 1 {
		d := next.next()
		require.True(t, want[d.Message().ID()], "comes to the next consumer, once")
		want[d.Message().ID()] = false
		require.NoError(t, d.Ack())
	}
	emptied(t, s, to)
}

func testShare(t *testing.T, s Setup) {
	const total, members = 300, 3
	to := transport.ToLane(6)
	var mu sync.Mutex
	seen := make(map[string]int)
	all := make(chan struct{})
	for range members {
		consumeWith(t, s, to, 7, func(d transport.Delivery) {
			mu.Lock()
			defer mu.Unlock()
			if d.Ack() == nil {
				seen[d.Message().ID()]++
			}
			if len(seen) == total {
				select {
				case <-all:
				default:
					close(all)
				}
			}
		})
	}
	msgs := messages(to, total)
	publish(t, s, msgs)
	soon(t, all, "not all have come")
	mu.Lock()
	defer mu.Unlock()
	for _, id := range ids(msgs) {
		require.Contains(t, seen, id)
	}
	require.Len(t, seen, total)
}

// testWipe deletes everything under running consumers, repeatedly. Earlier messages may
// be lost; later ones arrive.
func testWipe(t *testing.T, s Setup) {
	if s.Wipe == nil {
		t.Skip("nothing to wipe")
	}
	lane, work := transport.ToLane(7), transport.ToWork("wiped.topic")
	inLane, inWork := consume(t, s, lane, 4), consume(t, s, work, 4)
	for range 3 {
		for _, c := range []struct {
			to transport.Destination
			in *inbox
		}{{lane, inLane}, {work, inWork}} {
			msg := messages(c.to, 1)
			untilPublished(t, s, msg)
			require.Equal(t, ids(msg), c.in.acked(1))
		}
		s.Wipe(t)
	}
	_, _, err := s.Bus.Oldest(t.Context(), lane)
	require.NoError(t, err, "a stream that is gone holds nothing")
}

// untilPublished does what the sweeper does: it sends until there is a PubAck.
func untilPublished(t *testing.T, s Setup, msgs []transport.Message) {
	t.Helper()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return Publish(ctx, s.Bus, msgs...) == nil
	}, patience, 20*time.Millisecond)
}
