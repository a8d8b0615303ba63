package nats_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/nats"
)

// calm bounds how long after the last fault a queue may contain earlier messages: some
// ack waits, and the time of a binding.
const calm = 15 * time.Second

// storm is a space whose servers and streams fail under three processes.
type storm struct {
	t      *testing.T
	dice   *rand.Rand
	server *dev.NATS
	cfg    nats.Config
	buses  []*nats.Bus
	to     []transport.Destination

	mu   sync.Mutex
	came map[transport.Destination]bool // destinations whose probe arrived

	probes int
	did    []string
}

// T5, F9, F10: after any sequence of restarts, deletions and purges a new message is
// taken, and no queue keeps a message that nobody takes, which the look before a re-send
// would count as a backlog (T2).
//
// QUIPU_STORM_SEED repeats the choices of a failed storm; QUIPU_STORMS is the number of
// storms.
func TestF10AnySequenceOfFaultsEndsInEmptyQueues(t *testing.T) {
	t.Parallel()
	storms, first := soak.Times(1, 2), rand.Uint64()
	if s := os.Getenv("QUIPU_STORM_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		storms, first = 1, n
	}
	if s := os.Getenv("QUIPU_STORMS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		storms = n
	}
	for i := range storms {
		seed := first + uint64(i)
		t.Run(fmt.Sprintf("QUIPU_STORM_SEED=%d", seed), func(t *testing.T) { playStorm(t, seed) })
	}
}

func playStorm(t *testing.T, seed uint64) {
	t.Helper()
	server := devtest.NATS(t)
	cfg := config(server)
	cfg.InProcess, cfg.URL = nil, server.URL()
	s := &storm{
		t: t, dice: rand.New(rand.NewPCG(seed, 0)), server: server, cfg: cfg, came: map[transport.Destination]bool{},
		to: []transport.Destination{transport.ToLane(0), transport.ToLane(1), transport.ToStart(), transport.ToWork("a.b")},
	}
	for range 3 {
		bus := open(t, cfg)
		require.NoError(t, bus.Ensure(t.Context()))
		s.buses = append(s.buses, bus)
		for _, d := range s.to {
			s.consume(bus, d)
		}
	}
	stop := s.load()
	for range 6 + s.dice.IntN(6) {
		s.fault()
		time.Sleep(time.Duration(s.dice.IntN(400)) * time.Millisecond)
	}
	stop()
	s.settle()
}

// consume takes messages; it hands some back and is slow with others.
func (s *storm) consume(bus *nats.Bus, d transport.Destination) {
	consume(s.t, bus, d, 8, func(got transport.Delivery) {
		go func() {
			m := got.Message()
			if m.Header.Turn == 1 {
				s.mu.Lock()
				s.came[d] = true
				s.mu.Unlock()
			}
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
			if rand.IntN(10) == 0 {
				_ = got.Nak(10 * time.Millisecond)
				return
			}
			_ = got.Ack() // lost with the connection: it comes again
		}()
	})
}

// load sends to all destinations until stop.
func (s *storm) load() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	for i, bus := range s.buses {
		wg.Go(func() {
			for n := uint32(0); ctx.Err() == nil; n++ {
				msgs := make([]transport.Message, len(s.to))
				for j, d := range s.to {
					msgs[j] = message(d, 0)
					msgs[j].Header.GUID = [16]byte{
						byte(i), byte(j), 2: byte(n >> 16), 3: byte(n >> 8), 4: byte(n), 15: 1,
					}
					msgs[j].Header.PublishedAt = time.Now().UnixMicro()
				}
				_ = bus.Send(ctx, msgs, nil) // a message that a fault loses is not missed
				time.Sleep(time.Millisecond)
			}
		})
	}
	return func() { cancel(); devtest.AwaitAll(s.t, "the end of the load", wg.Wait) }
}

// fault is a random fault of F9 or F10.
func (s *storm) fault() {
	kind := s.dice.IntN(6)
	name := streams(s.cfg)[s.dice.IntN(3)]
	half := s.dice.IntN(2)
	s.did = append(s.did, fmt.Sprint([]string{"restart", "restart", "restart", "delete", "purge", "consumers"}[kind], " ", name))
	if kind < 3 {
		require.NoError(s.t, s.server.Restart(s.t.Context()))
		return
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Second)
	defer cancel()
	nc, err := natsgo.Connect(s.server.URL(), natsgo.NoReconnect())
	require.NoError(s.t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(s.t, err)
	switch kind {
	case 3:
		_ = js.DeleteStream(ctx, name)
	case 4:
		if stream, err := js.Stream(ctx, name); err == nil {
			_ = stream.Purge(ctx)
		}
	default:
		if stream, err := js.Stream(ctx, name); err == nil {
			n := 0
			for consumer := range stream.ConsumerNames(ctx).Name() {
				if n++; n%2 == half {
					_ = stream.DeleteConsumer(ctx, consumer)
				}
			}
		}
	}
}

// settle sends a probe to each destination, and waits until all probes have arrived and
// all queues are empty.
func (s *storm) settle() {
	s.t.Helper()
	began := time.Now()
	for time.Since(began) < calm {
		if s.empty() {
			s.t.Logf("%v: calm after %s", s.did, time.Since(began))
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.tell()
	s.t.Fatalf("after %v the queues are not empty", s.did)
}

// empty says whether all queues are empty and all probes have arrived. It sends a lost
// probe again, as a row would (T2).
func (s *storm) empty() bool {
	all := true
	for i, d := range s.to {
		_, found, err := s.buses[0].Oldest(s.t.Context(), d)
		s.mu.Lock()
		came := s.came[d]
		s.mu.Unlock()
		all = all && err == nil && !found && came
		if err == nil && !found && !came {
			s.probes++
			probe := message(d, 0)
			probe.Header.Turn, probe.Header.GUID = 1, [16]byte{0: 0xbb, 1: byte(i), 2: byte(s.probes)}
			_ = s.buses[0].Send(s.t.Context(), []transport.Message{probe}, nil)
			time.Sleep(50 * time.Millisecond)
		}
	}
	return all
}

func (s *storm) tell() {
	_, js := client(s.t, s.server)
	for _, name := range streams(s.cfg) {
		stream, err := js.Stream(s.t.Context(), name)
		require.NoError(s.t, err)
		info, err := stream.Info(s.t.Context(), jetstream.WithSubjectFilter(">"))
		require.NoError(s.t, err)
		s.t.Logf("%s %s: %+v", name, info.Created, info.State)
		for x := range stream.ListConsumers(s.t.Context()).Info() {
			if x.NumPending > 0 || x.NumAckPending > 0 || info.State.Subjects[x.Config.FilterSubject] > 0 {
				s.t.Logf("  %s %s: delivered %+v floor %+v ack pending %d redelivered %d pending %d waiting %d",
					x.Name, x.Created, x.Delivered, x.AckFloor, x.NumAckPending, x.NumRedelivered, x.NumPending,
					x.NumWaiting)
			}
		}
		for seq := info.State.FirstSeq; seq <= info.State.LastSeq && seq < info.State.FirstSeq+20; seq++ {
			if m, err := stream.GetMsg(s.t.Context(), seq); err == nil {
				s.t.Logf("  %d %s %s", seq, m.Subject, m.Time)
			}
		}
	}
}
