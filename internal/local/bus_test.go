package local_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quipu-journal/quipu/internal/local"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/traffic"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	lane = transport.ToLane(3)
	work = transport.ToWork("t")
)

// process is a local bus over a bus that it may share with others, in a bubble.
type process struct {
	*testing.T
	*local.Bus
	servers *membus.Bus
}

func start(t *testing.T, servers *membus.Bus) *process {
	t.Helper()
	b := local.New(servers, "p")
	b.Traffic = &traffic.Counts{}
	return &process{T: t, Bus: b, servers: servers}
}

// serve consumes until stop is called.
func (p *process) serve(from transport.Destination, slots int, handle func(transport.Delivery)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Consume(ctx, from, slots, handle) }()
	synctest.Wait()
	return func() {
		cancel()
		require.NoError(p, <-ended)
	}
}

// send sends one message and returns its outcome.
func (p *process) send(to transport.Destination, n byte, holder string) error {
	p.Helper()
	told := make(chan error, 1)
	m := transport.Message{
		To: to, Kind: journal.MessageLeg1,
		Header: transport.Header{GUID: [16]byte{n}, Publication: 1, Epoch: 1, PublishedAt: int64(n)},
		Holder: holder,
	}
	err := p.Send(p.Context(), []transport.Message{m}, func(_ int, err error) { told <- err })
	require.NoError(p, err)
	return <-told
}

func inBubble(t *testing.T, run func(t *testing.T, servers *membus.Bus)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers := membus.New(membus.Config{})
		defer func() { require.NoError(t, servers.Close()) }()
		run(t, servers)
	})
}

// W7: messages for a lane that the process serves go by memory, as many as it has slots.
// Messages that are handed back, and further ones, go by the bus beneath.
func TestLane(t *testing.T) {
	inBubble(t, func(t *testing.T, servers *membus.Bus) {
		p := start(t, servers)
		require.NoError(t, p.send(lane, 1, ""))
		require.Equal(t, 1, servers.Len(lane), "nobody serves it here")

		var got []transport.Delivery
		stop := p.serve(lane, 2, func(d transport.Delivery) { got = append(got, d) })
		require.Len(t, got, 1)
		require.NoError(t, got[0].Ack())
		for n := range byte(3) {
			require.NoError(t, p.send(lane, 10+n, ""))
		}
		synctest.Wait()
		require.Len(t, got, 4)
		require.Equal(t, 1, servers.Len(lane), "two go by memory, for which there are slots")
		at, found, err := p.Oldest(t.Context(), lane)
		require.NoError(t, err)
		require.True(t, found)
		require.EqualValues(t, 10, at, "what is unfinished here counts (T2)")

		require.Equal(t, 1, got[1].Count())
		require.NoError(t, got[1].InProgress())
		require.NoError(t, got[1].Nak(time.Second))
		require.ErrorIs(t, got[1].Ack(), transport.ErrFinished)
		require.ErrorIs(t, got[1].InProgress(), transport.ErrFinished)
		require.Equal(t, 1, servers.Len(lane))
		time.Sleep(2 * time.Second) // the bubble's clock
		synctest.Wait()
		require.Equal(t, got[1].Message().Header.GUID, got[4].Message().Header.GUID, "it came again, by the servers")
		for _, d := range got[2:] {
			require.NoError(t, d.Ack())
		}
		_, found, err = p.Oldest(t.Context(), lane)
		require.NoError(t, err)
		require.False(t, found)

		m := transport.Message{
			To: lane, Kind: journal.MessageResponse, ByBus: true,
			Header: transport.Header{GUID: [16]byte{15}, Publication: 1, Epoch: 1},
		}
		require.NoError(t, p.Send(t.Context(), []transport.Message{m}, nil))
		synctest.Wait()
		require.Equal(t, 1, servers.Len(lane), "it is with a server until it is finished")
		require.NoError(t, got[len(got)-1].Ack())
		require.Zero(t, servers.Len(lane))

		stop()
		require.NoError(t, p.send(lane, 20, ""))
		require.Equal(t, 1, servers.Len(lane), "nobody serves it here any more")
		went := map[traffic.Way]int64{}
		p.Traffic.Each(func(_ journal.MessageKind, way traffic.Way, n int64) { went[way] += n })
		require.EqualValues(t, 2, went[traffic.Memory])
		require.GreaterOrEqual(t, went[traffic.JetStream], int64(4), "and once more if the one that came back had gone by memory (O4)")
		require.Zero(t, went[traffic.Folded])
	})
}

// W7, T10: messages that wait for a lane that ends go to another process that serves it.
func TestLaneEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, servers *membus.Bus) {
		p := start(t, servers)
		held, release := make(chan transport.Delivery), make(chan struct{})
		stop := p.serve(lane, 4, func(d transport.Delivery) {
			select {
			case held <- d:
			case <-release:
				_ = d.Nak(transport.MinNakDelay)
			}
		})
		for n := range byte(3) {
			require.NoError(t, p.send(lane, 1+n, ""))
		}
		require.NoError(t, (<-held).Ack())
		ended := make(chan struct{})
		go func() { stop(); close(ended) }()
		synctest.Wait()
		close(release)
		<-ended
		require.Equal(t, 2, servers.Len(lane))
	})
}

// J8: a response that brings an outcome goes to the engine of this process, or to nobody: what comes
// back, or is left at the end, is told to its run, and no server sends it.
func TestAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, servers *membus.Bus) {
		p := start(t, servers)
		told := map[byte]error{}
		answer := func(n byte) bool {
			m := transport.Message{
				To: lane, Kind: journal.MessageResponse,
				Header: transport.Header{GUID: [16]byte{n}, Publication: 1, Epoch: 1, PublishedAt: int64(n)},
			}
			return p.Answer(&m, &store.Completion{Told: func(_ store.EffectRow, err error) { told[n] = err }})
		}
		require.False(t, answer(1), "nobody serves the lane here")
		var got []transport.Delivery
		stop := p.serve(lane, 3, func(d transport.Delivery) { got = append(got, d) })
		for n := range byte(3) {
			require.True(t, answer(10+n))
		}
		require.False(t, answer(2), "there is no room")
		synctest.Wait()
		require.Len(t, got, 3)
		brings := func(d transport.Delivery) *store.Completion {
			return d.(interface{ Completion() *store.Completion }).Completion()
		}
		brings(got[0]).Told(store.EffectRow{}, nil)
		require.NoError(t, got[0].Ack())
		require.NoError(t, got[1].Nak(time.Second))
		require.ErrorIs(t, got[1].Ack(), transport.ErrFinished)
		require.NoError(t, got[2].Nak(0))
		stop()
		require.Len(t, told, 3)
		require.NoError(t, told[10])
		require.ErrorIs(t, told[11], store.ErrUnavailable)
		require.ErrorIs(t, told[12], store.ErrUnavailable)
		require.Zero(t, servers.Len(lane), "nothing of it goes by a server")
		require.False(t, answer(3), "the lane has ended")
	})
}

// J8: the engine may tell a run that it records nothing before Answer has returned. The run then makes its
// message anew, which is its own.
func TestAnswerIsToldAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, servers *membus.Bus) {
		p := start(t, servers)
		stop := p.serve(lane, 1, func(d transport.Delivery) { _ = d.Nak(0) })
		defer stop()
		m := transport.Message{
			To: lane, Kind: journal.MessageResponse,
			Header: transport.Header{GUID: [16]byte{1}, Publication: 1, Epoch: 1, PublishedAt: 1},
		}
		told := make(chan struct{})
		require.True(t, p.Answer(&m, &store.Completion{Told: func(store.EffectRow, error) {
			m = transport.Message{}
			close(told)
		}}))
		<-told
	})
}

// W7: a request is taken before it is committed. A share of the slots is reserved for
// requests from the bus beneath, and there are never more runs than slots.
func TestTopic(t *testing.T) {
	inBubble(t, func(t *testing.T, servers *membus.Bus) {
		p := start(t, servers)
		_, ok := p.Take("t")
		require.False(t, ok, "nobody serves it here")

		var got []transport.Delivery
		stop := p.serve(work, 8, func(d transport.Delivery) { got = append(got, d) })
		holders := map[string]bool{}
		for range 6 {
			holder, ok := p.Take("t")
			require.True(t, ok)
			holders[holder] = true
		}
		require.Len(t, holders, 6, "each has a name of its own")
		_, ok = p.Take("t")
		require.False(t, ok, "a quarter is left to others")
		n := byte(0)
		for holder := range holders {
			n++
			require.NoError(t, p.send(work, n, holder))
		}
		require.Len(t, got, 6)
		require.Contains(t, holders, got[0].Message().Holder)

		for n := range byte(4) { // two of them find a slot
			require.NoError(t, p.send(work, 20+n, ""))
		}
		synctest.Wait()
		require.Len(t, got, 8)
		require.Equal(t, 4, servers.Len(work))
		for _, d := range got[:2] {
			require.NoError(t, d.Ack())
		}
		time.Sleep(time.Second) // the bubble's clock
		synctest.Wait()
		require.Len(t, got, 10)
		_, ok = p.Take("t")
		require.False(t, ok, "all slots are taken")
		for _, d := range got[2:] {
			require.NoError(t, d.Ack())
		}
		require.Zero(t, servers.Len(work))

		late, ok := p.Take("t")
		require.True(t, ok)
		p.Drop("t")
		stop()
		require.ErrorIs(t, p.send(work, 30, late), local.ErrNotServed)
		require.Zero(t, servers.Len(work), "its row sends it")
	})
}

// W7: a single slot is for requests from the bus beneath.
func TestOneSlot(t *testing.T) {
	inBubble(t, func(t *testing.T, servers *membus.Bus) {
		p := start(t, servers)
		stop := p.serve(work, 1, func(d transport.Delivery) { _ = d.Ack() })
		defer stop()
		_, ok := p.Take("t")
		require.False(t, ok)
	})
}

// W7: with senders, takers and a consumer at once there are never more runs than slots,
// and each request is run.
func TestTopicRaces(t *testing.T) {
	t.Parallel()
	servers := membus.New(membus.Config{})
	defer func() { require.NoError(t, servers.Close()) }()
	b := local.New(servers, "p")
	const slots, each, senders = 4, 200, 4
	var running, most, runs atomic.Int64
	var handlers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	consumed := make(chan error, 1)
	go func() {
		consumed <- b.Consume(ctx, work, slots, func(d transport.Delivery) {
			n := running.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			handlers.Go(func() {
				time.Sleep(time.Duration(d.Message().Header.GUID[1]) * time.Microsecond)
				runs.Add(1)
				running.Add(-1)
				_ = d.Ack()
			})
		})
	}()
	var sending sync.WaitGroup
	for s := range byte(senders) {
		sending.Go(func() {
			for n := range each {
				holder, _ := b.Take("t")
				m := transport.Message{
					To: work, Header: transport.Header{GUID: [16]byte{1 + s, byte(n)}, Publication: 1, Epoch: 1},
					Holder: holder,
				}
				_ = b.Send(ctx, []transport.Message{m}, nil)
			}
		})
	}
	sending.Wait()
	require.Eventually(t, func() bool { return runs.Load() == senders*each }, 20*time.Second, time.Millisecond)
	require.LessOrEqual(t, most.Load(), int64(slots))
	cancel()
	require.NoError(t, <-consumed)
	handlers.Wait()
}
