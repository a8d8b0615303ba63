package nats

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/transporttest"
	"github.com/quipu-journal/quipu/transport"
)

const pinPatience = 30 * time.Second

// engines are processes that share the lanes of a space.
type engines struct {
	*testing.T
	cfg Config

	mu   sync.Mutex
	got  map[int]map[string]int // lane, process: messages
	all  int
	sent int
}

func newEngines(t *testing.T, cfg Config) *engines {
	t.Helper()
	t.Parallel()
	cfg.Space, cfg.MaxBytes, cfg.URL = "lanes", 16<<20, devtest.NATS(t).URL()
	return &engines{T: t, cfg: cfg, got: map[int]map[string]int{}}
}

// start starts an engine that takes messages from all lanes until it is stopped. handle,
// if not nil, gets each message.
func (e *engines) start(name string, living func() int, handle func(transport.Delivery)) (b *Bus, stop func()) {
	e.Helper()
	cfg := e.cfg
	cfg.Engines = living
	b, err := Open(e.Context(), cfg)
	require.NoError(e, err)
	require.Eventually(e, func() bool { return b.Ensure(e.Context()) == nil }, pinPatience, 10*time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	var consuming sync.WaitGroup
	for lane := range b.cfg.Lanes {
		consuming.Go(func() {
			_ = b.Consume(ctx, transport.ToLane(lane), 4, func(d transport.Delivery) {
				e.count(lane, name)
				if handle != nil {
					handle(d)
					return
				}
				_ = d.Ack()
			})
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		devtest.AwaitAll(e, "the end of the engine's consumers", consuming.Wait)
		_ = b.Close()
	})
	e.Cleanup(stop)
	return b, stop
}

func (e *engines) count(lane int, name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.got[lane] == nil {
		e.got[lane] = map[string]int{}
	}
	e.got[lane][name]++
	e.all++
}

// round sends one message to each lane, waits until all have been taken, and returns who
// took each.
func (e *engines) round(by *Bus) (takers []string, counts map[string]int) {
	e.Helper()
	e.mu.Lock()
	clear(e.got)
	e.all = 0
	e.mu.Unlock()
	for lane := range by.cfg.Lanes {
		e.sent++
		m := transport.Message{
			To:     transport.ToLane(lane),
			Header: transport.Header{GUID: [16]byte{1, byte(e.sent), byte(e.sent >> 8)}, Publication: 1},
		}
		require.NoError(e, transporttest.Publish(e.Context(), by, m))
	}
	require.Eventually(e, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.got) == by.cfg.Lanes
	}, pinPatience, time.Millisecond, "every lane is served")
	e.mu.Lock()
	defer e.mu.Unlock()
	counts = map[string]int{}
	for lane := range by.cfg.Lanes {
		for name := range e.got[lane] {
			takers = append(takers, name)
			counts[name]++
		}
	}
	return takers, counts
}

func so(n int) func() int { return func() int { return n } }

// 7.6: the messages of a lane go to one process. When it ends, another has them without
// waiting for the pin to lapse; when it dies, after that wait.
func TestLaneIsPinned_7_6(t *testing.T) {
	e := newEngines(t, Config{Lanes: 2, Pin: 10 * time.Second, LaneAckWait: 10 * time.Second})
	a, stopA := e.start("a", so(1), nil)
	_, counts := e.round(a)
	require.Equal(t, map[string]int{"a": 2}, counts)
	b, _ := e.start("b", so(1), nil)
	for range 10 {
		_, counts = e.round(b)
		require.Equal(t, map[string]int{"a": 2}, counts, "it keeps them, whoever else asks")
	}
	stopA()
	for range 10 {
		_, counts = e.round(b)
		require.Equal(t, map[string]int{"b": 2}, counts)
	}
}

// 7.6: a process that no longer pulls loses its lanes, and has them again when others
// end.
func TestPinLapses_7_6(t *testing.T) {
	e := newEngines(t, Config{Lanes: 1, Pin: 200 * time.Millisecond})
	var said devtest.Log
	e.cfg.Log = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var acks atomic.Bool
	held := make(chan transport.Delivery, 16)
	a, _ := e.start("a", so(1), func(d transport.Delivery) {
		if acks.Load() {
			_ = d.Ack()
			return
		}
		held <- d
	})
	for range 4 { // all its slots: it does not pull
		_, counts := e.round(a)
		require.Equal(t, map[string]int{"a": 1}, counts)
	}
	b, stopB := e.start("b", so(1), nil)
	_, counts := e.round(b)
	require.Equal(t, map[string]int{"b": 1}, counts)
	acks.Store(true)
	for range 4 { // it pulls with a pin that has lapsed
		require.NoError(t, devtest.Await(t, "a message that is held", held).Ack())
	}
	_, counts = e.round(b)
	require.Equal(t, map[string]int{"b": 1}, counts)
	stopB()
	_, counts = e.round(a)
	require.Equal(t, map[string]int{"a": 1}, counts)
	require.NotContains(t, said.String(), "consumer lost")
}

// 4.4: Preflight warns about a server without priority groups.
func TestOldServersAreWarnedOf(t *testing.T) {
	t.Parallel()
	for version, warned := range map[string]bool{"2.10.29": true, "1.4.1": true, "2.11.0": false, "2.15.2": false, "3.0.0": false, "": false} {
		r := Report{ServerVersion: version}
		r.checkVersion()
		require.Equal(t, warned, len(r.Warnings) == 1, version)
	}
}

// 7.6: after a reconnect a process has its lanes again at once.
func TestPinOutlivesAReconnect_7_6(t *testing.T) {
	e := newEngines(t, Config{Lanes: 2, Pin: 10 * time.Second, LaneAckWait: 10 * time.Second})
	a, _ := e.start("a", so(1), nil)
	b, _ := e.start("b", so(1), nil)
	for range 3 {
		_, before := e.round(b)
		breaks := a.link.breaks()
		require.NoError(t, a.nc.ForceReconnect())
		devtest.Await(t, "the break of the connection", breaks)
		_, after := e.round(b)
		require.Equal(t, before, after)
	}
}

// 7.6: engines reach equal shares of the lanes; an engine that counts but does not pull
// costs a pause.
func TestLanesAreShared_7_6(t *testing.T) {
	e := newEngines(t, Config{Lanes: 6})
	a, _ := e.start("a", so(3), nil)
	e.round(a)
	e.start("b", so(3), nil)
	_, stopC := e.start("c", so(3), nil)
	shared := map[string]int{"a": 2, "b": 2, "c": 2}
	require.Eventually(t, func() bool {
		_, counts := e.round(a)
		return len(counts) == 3 && counts["a"] == shared["a"] && counts["b"] == shared["b"]
	}, 2*pinPatience, 100*time.Millisecond)
	stopC()
	_, counts := e.round(a)
	require.Zero(t, counts["c"])
}
