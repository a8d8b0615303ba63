package transporttest

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

// patience bounds every wait for an event.
const patience = 30 * time.Second

// Setup is one fresh, empty bus without faults, and its settings.
type Setup struct {
	Bus transport.Bus
	// AckWait of lanes as configured; about a second is best.
	AckWait time.Duration
	// MaxInFlight as configured, at most 64, so that backpressure can be reached.
	MaxInFlight int
	// Wipe deletes all streams and consumers behind the bus's back (F10); nil if
	// the bus has none.
	Wipe func(t *testing.T)
	// Other is the same bus, as another process sees it.
	Other transport.Bus
	// Inject puts a message with raw headers on the bus, as a foreign client.
	Inject func(t *testing.T, to transport.Destination, headers map[string]string, body []byte)
}

// Run runs the suite. It calls open for each test; tests run in parallel, and open uses
// t.Cleanup to close what it opened.
func Run(t *testing.T, open func(t *testing.T) Setup) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s Setup)
	}{
		{"EveryMessageOnce", testEveryMessage},
		{"HeadersRoundTrip_T7", testHeaders},
		{"OneIDOnce_OtherPublicationToo_L7", testMessageID},
		{"RedeliveryCounts", testRedelivery},
		{"NakComesBackAfterItsDelay_T3", testNak},
		{"TermIsFinal_T3", testTerm},
		{"FinishedOnce", testFinishedOnce},
		{"InProgressHoldsOff", testInProgress},
		{"NeverMoreThanSlots_T5", testSlots},
		{"SlotsOneByOne", testOneSlot},
		{"MalformedIsDelivered_T3", testMalformed},
		{"Oldest_T2", testOldest},
		{"RemovesWhatIsStale_T1", testRemoveStale},
		{"EndHandsBack", testEnd},
		{"ConsumersShare_T8", testShare},
		{"RebindsAfterLoss_T5_F10", testWipe},
		{"DoneForEach", testDone},
		{"SendEndsWithContext", testSendContext},
		{"Backpressure_T11", testBackpressure},
		{"ConcurrentSenders", testSenders},
		{"RefusesWhatCannotBe", testRefuses},
		{"TellsWhoListens_W5", testTell},
		{"TellsAllThatListen_W5", testTellAll},
		{"Close", testClose},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			require.NoError(t, s.Bus.Ensure(t.Context()))
			test.run(t, s)
		})
	}
}

// numbers gives every message of a test binary its own GUID.
var numbers atomic.Uint64

// messages makes n messages to d, with fresh GUIDs.
func messages(d transport.Destination, n int) []transport.Message {
	msgs := make([]transport.Message, n)
	for i := range msgs {
		msgs[i] = transport.Message{To: d, Header: transport.Header{Publication: 1, Epoch: 1}}
		msgs[i].Header.GUID[0] = 0xf0
		binary.BigEndian.PutUint64(msgs[i].Header.GUID[8:], numbers.Add(1))
	}
	return msgs
}

func ids(msgs []transport.Message) []string {
	all := make([]string, len(msgs))
	for i := range msgs {
		all[i] = msgs[i].ID()
	}
	return all
}

func publish(t *testing.T, s Setup, msgs []transport.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, Publish(ctx, s.Bus, msgs...))
}

// inbox is one running Consume; its deliveries come out of next.
type inbox struct {
	t      *testing.T
	came   chan transport.Delivery
	had    map[string]bool // ids of those that acked has returned
	cancel context.CancelFunc
	ended  chan error
	once   sync.Once
}

// consume runs a Consume until the test ends or stop is called.
func consume(t *testing.T, s Setup, from transport.Destination, slots int) *inbox {
	t.Helper()
	came := make(chan transport.Delivery, slots)
	in := consumeWith(t, s, from, slots, func(d transport.Delivery) {
		select {
		case came <- d:
		default: // the channel has room for as many as there are slots
			t.Error("more unfinished deliveries than slots")
		}
	})
	in.came = came
	return in
}

// consumeWith is consume with the test's own handle.
func consumeWith(t *testing.T, s Setup, from transport.Destination, slots int, handle func(transport.Delivery)) *inbox {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	in := &inbox{t: t, had: map[string]bool{}, cancel: cancel, ended: make(chan error, 1)}
	go func() { in.ended <- s.Bus.Consume(ctx, from, slots, handle) }()
	t.Cleanup(in.stop)
	return in
}

// soon is what comes on a channel, which has to come.
func soon[T any](t *testing.T, from <-chan T, missing string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatal(missing)
	}
	return v
}

// stop ends the Consume, which must return nil.
func (in *inbox) stop() {
	in.once.Do(func() {
		in.cancel()
		select {
		case err := <-in.ended:
			require.NoError(in.t, err)
		case <-time.After(patience):
			in.t.Error("Consume did not return after its context had ended")
		}
	})
}

func (in *inbox) next() transport.Delivery {
	in.t.Helper()
	select {
	case d := <-in.came:
		return d
	case err := <-in.ended:
		in.ended <- err
		in.t.Fatalf("Consume ended: %v", err)
	case <-time.After(patience):
		in.t.Fatal("no delivery")
	}
	return nil
}

// quiet requires that nothing comes for a while.
func (in *inbox) quiet(d time.Duration) {
	in.t.Helper()
	select {
	case got := <-in.came:
		in.t.Fatalf("unexpected delivery %d of %s", got.Count(), got.Message().ID())
	case <-time.After(d):
	}
}

// acked takes and acks n messages and returns their ids. One that comes again is acked again: a busy
// machine acks later than the ack wait.
func (in *inbox) acked(n int) []string {
	in.t.Helper()
	all := make([]string, 0, n)
	for len(all) < n {
		d := in.next()
		require.NoError(in.t, d.Err())
		require.NoError(in.t, d.Ack())
		id := d.Message().ID()
		if in.had[id] && d.Count() > 1 {
			continue
		}
		in.had[id] = true
		all = append(all, id)
	}
	return all
}

// emptied waits until nothing is left for d.
func emptied(t *testing.T, s Setup, d transport.Destination) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, found, err := s.Bus.Oldest(t.Context(), d)
		return err == nil && !found
	}, patience, 5*time.Millisecond, "messages are left for %s", d)
}
