package transporttest

import (
	"encoding/hex"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

func testEveryMessage(t *testing.T, s Setup) {
	for _, c := range []struct {
		to           transport.Destination
		batch, slots int
	}{
		{transport.ToLane(0), 1, 1},
		{transport.ToLane(3), 7, 3},
		{transport.ToStart(), 50, 8},
		{transport.ToWork("payments.charge"), 500, 64},
		{transport.ToWork("payments-charge"), 200, 1000},
	} {
		msgs := messages(c.to, c.batch)
		publish(t, s, msgs)
		in := consume(t, s, c.to, c.slots)
		require.ElementsMatch(t, ids(msgs), in.acked(c.batch), "%s", c.to)
		emptied(t, s, c.to)
		in.stop()
	}
}

func testHeaders(t *testing.T, s Setup) {
	full := messages(transport.ToWork("a.b"), 1)[0]
	full.Header.Publication, full.Header.Turn, full.Header.Epoch = 12, 3, 7
	full.Header.OriginSession = [16]byte{1, 2, 3}
	full.Header.OriginSeq, full.Header.PublishedAt = 1<<40, 1_790_000_000_000_001
	full.Header.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	full.Body = []byte(`{"total":"12.50","note":"größer"}`)
	bare := transport.Message{To: full.To, Header: transport.Header{GUID: [16]byte{9}}}
	for _, want := range []transport.Message{full, bare} {
		publish(t, s, []transport.Message{want})
		in := consume(t, s, want.To, 1)
		d := in.next()
		require.NoError(t, d.Err())
		require.Equal(t, want.To, d.Message().To)
		require.Equal(t, want.Header, d.Message().Header)
		require.Equal(t, string(want.Body), string(d.Message().Body))
		require.NoError(t, d.Ack())
		in.stop()
	}
	// The wire drops these, which is no reason to refuse the message: space around a
	// value, and the number of a commit without a session.
	loose := messages(full.To, 1)[0]
	loose.Header.Traceparent, loose.Header.OriginSeq = " "+full.Header.Traceparent+"\t", 5
	publish(t, s, []transport.Message{loose})
	in := consume(t, s, loose.To, 1)
	d := in.next()
	require.NoError(t, d.Err())
	require.NoError(t, d.Ack())
	in.stop()
}

func testMessageID(t *testing.T, s Setup) {
	first := messages(transport.ToLane(1), 1)[0]
	second := first
	second.Header.Publication++
	publish(t, s, []transport.Message{first})
	publish(t, s, []transport.Message{first, second, first})
	in := consume(t, s, first.To, 10)
	require.ElementsMatch(t, []string{first.ID(), second.ID()}, in.acked(2))
	emptied(t, s, first.To)
}

func testRedelivery(t *testing.T, s Setup) {
	to := transport.ToLane(2)
	publish(t, s, messages(to, 1))
	in := consume(t, s, to, 3)
	first := in.next()
	require.Equal(t, 1, first.Count())
	second := in.next()
	require.Equal(t, 2, second.Count(), "an unfinished delivery comes again after the ack wait")
	require.Equal(t, first.Message().ID(), second.Message().ID())
	require.NoError(t, second.Ack())
	emptied(t, s, to)
	require.NoError(t, first.Ack(), "each delivery is finished, the message was")
}

func testNak(t *testing.T, s Setup) {
	to := transport.ToLane(0)
	publish(t, s, messages(to, 1))
	in := consume(t, s, to, 2)
	const delay = 300 * time.Millisecond
	d := in.next()
	handedBack := time.Now()
	require.NoError(t, d.Nak(delay))
	again := in.next()
	require.GreaterOrEqual(t, time.Since(handedBack), delay*9/10)
	require.Equal(t, 2, again.Count())
	require.NoError(t, again.Nak(0), "taken as the least delay: there is no bare Nak")
	last := in.next()
	require.Equal(t, 3, last.Count())
	require.NoError(t, last.Ack())
	emptied(t, s, to)
}

func testTerm(t *testing.T, s Setup) {
	to := transport.ToLane(0)
	publish(t, s, messages(to, 1))
	in := consume(t, s, to, 2)
	require.NoError(t, in.next().Term("poison:\nits decoder\r\nrefuses it"))
	emptied(t, s, to)
	in.quiet(s.AckWait * 3 / 2)
}

func testFinishedOnce(t *testing.T, s Setup) {
	to := transport.ToLane(0)
	publish(t, s, messages(to, 3))
	in := consume(t, s, to, 3)
	finish := []func(transport.Delivery) error{
		transport.Delivery.Ack,
		func(d transport.Delivery) error { return d.Term("no more") },
		func(d transport.Delivery) error { return d.Nak(time.Hour) },
	}
	for _, first := range finish {
		d := in.next()
		require.NoError(t, first(d))
		for _, second := range finish {
			require.ErrorIs(t, second(d), transport.ErrFinished)
		}
		require.ErrorIs(t, d.InProgress(), transport.ErrFinished)
	}
}

func testInProgress(t *testing.T, s Setup) {
	to := transport.ToLane(0)
	publish(t, s, messages(to, 1))
	in := consume(t, s, to, 100)
	d, said := in.next(), time.Now()
	for quiet := 0; quiet < 8; { // twice the ack wait, told in time
		select {
		case again := <-in.came:
			require.Greater(t, time.Since(said), s.AckWait/2, "a delivery in progress comes again")
			d, quiet = again, 0 // the test stood still for so long that it may
		case <-time.After(s.AckWait / 4):
			quiet++
		}
		require.NoError(t, d.InProgress())
		said = time.Now()
	}
	require.NoError(t, d.Ack())
	emptied(t, s, to)
}

// testSlots finishes deliveries from many goroutines in every way, and counts the
// unfinished ones.
func testSlots(t *testing.T, s Setup) {
	const slots, total = 10, 600
	to := transport.ToWork("slots")
	msgs := messages(to, total)
	var unfinished, most, acks atomic.Int64
	var workers sync.WaitGroup
	work := make(chan transport.Delivery)
	finished := make(chan struct{})
	for range slots {
		workers.Go(func() {
			for d := range work {
				unfinished.Add(-1)
				if d.Message().Header.GUID[15]%16 == 0 && d.Count() == 1 {
					_ = d.Nak(time.Millisecond)
				} else if d.Ack() == nil && acks.Add(1) == total {
					close(finished)
				}
			}
		})
	}
	in := consumeWith(t, s, to, slots, func(d transport.Delivery) {
		now := unfinished.Add(1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		work <- d
	})
	for batch := range 6 {
		publish(t, s, msgs[batch*100:(batch+1)*100])
	}
	soon(t, finished, "not all are acked")
	in.stop()
	close(work)
	workers.Wait()
	require.LessOrEqual(t, most.Load(), int64(slots))
	emptied(t, s, to)

	publish(t, s, messages(to, 3*slots))
	held := consume(t, s, to, slots)
	all := make([]transport.Delivery, slots)
	for i := range all {
		all[i] = held.next()
	}
	held.quiet(s.AckWait * 3 / 2) // neither a new message nor a redelivery
	for _, d := range all {
		require.NoError(t, d.Ack())
	}
	require.NoError(t, held.next().Ack(), "freed slots are filled again")
}

func testOneSlot(t *testing.T, s Setup) {
	to := transport.ToLane(0)
	msgs := messages(to, 100)
	in := consume(t, s, to, 1)
	for i := range msgs {
		publish(t, s, msgs[i:i+1])
		require.Equal(t, []string{msgs[i].ID()}, in.acked(1))
	}
}

func testMalformed(t *testing.T, s Setup) {
	to := transport.ToWork("malformed")
	guid := hex.EncodeToString([]byte("0123456789abcdef"))
	bad := []map[string]string{
		nil,
		{transport.HeaderGUID: "not hex"},
		{transport.HeaderGUID: guid[:30]},
		{transport.HeaderGUID: guid, transport.HeaderEpoch: "-1"},
		{transport.HeaderGUID: guid, transport.HeaderTurn: "1e3"},
	}
	for _, headers := range bad {
		s.Inject(t, to, headers, []byte("body"))
	}
	in := consume(t, s, to, 1)
	for range bad {
		d := in.next()
		require.ErrorIs(t, d.Err(), transport.ErrMalformed)
		require.Equal(t, to, d.Message().To)
		require.Equal(t, "body", string(d.Message().Body), "for the dead letter")
		require.NoError(t, d.Term("malformed"))
	}
	good := messages(to, 1)
	publish(t, s, good)
	require.Equal(t, ids(good), in.acked(1))
	emptied(t, s, to)
}
