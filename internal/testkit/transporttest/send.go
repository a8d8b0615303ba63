package transporttest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

// outcomes records the calls of done, one for each index.
type outcomes struct {
	t    *testing.T
	mu   sync.Mutex
	errs map[int]error
	left int
	all  chan struct{}
}

func newOutcomes(t *testing.T, n int) *outcomes {
	return &outcomes{t: t, errs: make(map[int]error), left: n, all: make(chan struct{})}
}

func (o *outcomes) done(i int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, twice := o.errs[i]; twice {
		o.t.Errorf("done was called twice for message %d", i)
		return
	}
	o.errs[i] = err
	if o.left--; o.left == 0 {
		close(o.all)
	}
}

// wait returns the outcomes of all messages.
func (o *outcomes) wait() map[int]error {
	o.t.Helper()
	soon(o.t, o.all, "done was not called for all")
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.errs
}

func testDone(t *testing.T, s Setup) {
	msgs := messages(transport.ToLane(0), 20)
	msgs[3].To = transport.Destination{}
	msgs[5].Header.GUID = [16]byte{}
	msgs[7].To = transport.ToWork("with space")
	msgs[9].Body = make([]byte, s.Bus.MaxPayload())
	want := map[int]error{
		3: transport.ErrInvalid, 5: transport.ErrInvalid, 7: transport.ErrInvalid, 9: transport.ErrTooLarge,
	}
	o := newOutcomes(t, len(msgs))
	o.mu.Lock() // done on this goroutine would deadlock
	err := s.Bus.Send(t.Context(), msgs, o.done)
	o.mu.Unlock()
	require.NoError(t, err)
	errs := o.wait()
	require.Len(t, errs, len(msgs))
	for i, err := range errs {
		require.ErrorIs(t, err, want[i], "message %d", i)
	}
	require.NoError(t, s.Bus.Send(t.Context(), messages(transport.ToLane(0), 3), nil), "done may be nil")
	require.NoError(t, s.Bus.Send(t.Context(), nil, nil))
}

func testSendContext(t *testing.T, s Setup) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	msgs := messages(transport.ToLane(0), 5)
	o := newOutcomes(t, len(msgs))
	require.ErrorIs(t, s.Bus.Send(ctx, msgs, o.done), context.Canceled)
	for i, err := range o.wait() {
		require.ErrorIs(t, err, context.Canceled, "message %d was not handed over", i)
	}
}

// testBackpressure blocks the outcomes, so that messages stay in flight.
func testBackpressure(t *testing.T, s Setup) {
	require.Positive(t, s.MaxInFlight)
	require.LessOrEqual(t, s.MaxInFlight, 64, "the suite wants to reach it")
	msgs := messages(transport.ToLane(0), 4*s.MaxInFlight)
	o := newOutcomes(t, len(msgs))
	first, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	returned := make(chan error, 1)
	go func() {
		returned <- s.Bus.Send(ctx, msgs, func(i int, err error) {
			once.Do(func() { close(first) })
			<-release
			o.done(i, err)
		})
	}()
	soon(t, first, "no outcome")
	select {
	case err := <-returned:
		t.Fatalf("Send returned (%v) with more messages than may be in flight", err)
	case <-time.After(200 * time.Millisecond):
	}
	cancel()
	require.ErrorIs(t, soon(t, returned, "a blocked Send did not end with its context"), context.Canceled)
	close(release)
	sent := 0
	for _, err := range o.wait() {
		if err == nil {
			sent++
		}
	}
	require.Positive(t, sent)
	require.LessOrEqual(t, sent, 2*s.MaxInFlight)
	publish(t, s, messages(transport.ToLane(0), 2*s.MaxInFlight))
}

func testSenders(t *testing.T, s Setup) {
	const senders, each = 8, 100
	to := transport.ToStart()
	var all []string
	var group sync.WaitGroup
	errs := make(chan error, senders)
	for range senders {
		msgs := messages(to, each)
		all = append(all, ids(msgs)...)
		group.Go(func() { errs <- Publish(t.Context(), s.Bus, msgs...) })
	}
	in := consume(t, s, to, 50)
	require.ElementsMatch(t, all, in.acked(senders*each))
	group.Wait()
	for range senders {
		require.NoError(t, <-errs)
	}
}

func testRefuses(t *testing.T, s Setup) {
	handle := func(transport.Delivery) { t.Error("nothing was published") }
	require.Positive(t, s.Bus.MaxPayload())
	require.ErrorIs(t, s.Bus.Consume(t.Context(), transport.Destination{}, 1, handle), transport.ErrInvalid)
	require.ErrorIs(t, s.Bus.Consume(t.Context(), transport.ToWork("*"), 1, handle), transport.ErrInvalid)
	require.ErrorIs(t, s.Bus.Consume(t.Context(), transport.ToLane(0), 0, handle), transport.ErrInvalid)
	require.ErrorIs(t, s.Bus.Consume(t.Context(), transport.ToLane(0), transport.MaxSlots+1, handle),
		transport.ErrInvalid)
	_, _, err := s.Bus.Oldest(t.Context(), transport.ToLane(-1))
	require.ErrorIs(t, err, transport.ErrInvalid)
}

func testClose(t *testing.T, s Setup) {
	to := transport.ToLane(0)
	publish(t, s, messages(to, 1))
	came, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.Bus.Consume(t.Context(), to, 1, func(d transport.Delivery) {
			_ = d.Ack()
			close(came)
		})
	}()
	soon(t, came, "no delivery")
	require.NoError(t, s.Bus.Close())
	require.ErrorIs(t, soon(t, ended, "Consume outlived its bus"), transport.ErrClosed)
	require.NoError(t, s.Bus.Close(), "idempotent")
	msgs := messages(to, 3)
	o := newOutcomes(t, len(msgs))
	_ = s.Bus.Send(t.Context(), msgs, o.done)
	for _, err := range o.wait() {
		require.ErrorIs(t, err, transport.ErrClosed)
	}
	require.ErrorIs(t, s.Bus.Consume(t.Context(), to, 1, nil), transport.ErrClosed)
}
