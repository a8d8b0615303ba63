package transporttest

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

// job is an id that no other test uses.
func job() (id [16]byte) {
	id[0] = 0xf1
	binary.BigEndian.PutUint64(id[8:], numbers.Add(1))
	return id
}

type listener struct {
	t    *testing.T
	told chan struct{}
	stop func()
}

func listen(t *testing.T, bus transport.Bus, id [16]byte) *listener {
	t.Helper()
	l := &listener{t: t, told: make(chan struct{}, 1)}
	stop, err := bus.Listen(id, func() {
		select {
		case l.told <- struct{}{}:
		default: // told must not block
		}
	})
	require.NoError(t, err)
	l.stop = stop
	t.Cleanup(stop)
	return l
}

// forget drops an earlier call of told.
func (l *listener) forget() {
	select {
	case <-l.told:
	default:
	}
}

// hears repeats tell until it is heard, because a Tell during a Listen may be lost.
func (l *listener) hears(tell func()) {
	l.t.Helper()
	limit := time.After(patience)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		tell()
		select {
		case <-l.told:
			return
		case <-again.C:
		case <-limit:
			l.t.Fatal("nobody is told")
		}
	}
}

func testTell(t *testing.T, s Setup) {
	one, two, nobody := job(), job(), job()
	s.Bus.Tell()
	s.Bus.Tell(nobody)
	for _, from := range []transport.Bus{s.Bus, s.Other} {
		a, b := listen(t, s.Bus, one), listen(t, s.Bus, two)
		a.hears(func() { from.Tell(nobody, one) })
		require.Empty(t, b.told, "it is told of its own job")
		b.hears(func() { from.Tell(two, nobody) })
		a.stop()
		a.stop()
		passed := job() // comes after all messages that were under way to a
		listen(t, s.Bus, passed).hears(func() { from.Tell(passed) })
		a.forget()
		b.forget()
		b.hears(func() { from.Tell(one, two) })
		require.Empty(t, a.told, "it has stopped listening")
		b.stop()
	}
	a := listen(t, s.Bus, one)
	a.hears(func() { s.Bus.Tell(one) })
	require.NoError(t, s.Bus.Close())
	s.Bus.Tell(one)
	_, err := s.Bus.Listen(two, func() {})
	require.ErrorIs(t, err, transport.ErrClosed)
	a.stop()
}

func testTellAll(t *testing.T, s Setup) {
	const jobs, each = 50, 3
	var wg sync.WaitGroup
	ids := make([][16]byte, jobs)
	var all []*listener
	for i := range ids {
		ids[i] = job()
		for range each {
			all = append(all, listen(t, s.Bus, ids[i]))
		}
	}
	for n, l := range all {
		wg.Go(func() { l.hears(func() { s.Other.Tell(ids[n/each]) }) })
	}
	wg.Wait()
	// A Tell from within told is allowed.
	last, again := job(), job()
	echo := listen(t, s.Bus, again)
	stop, err := s.Bus.Listen(last, func() { s.Bus.Tell(again) })
	require.NoError(t, err)
	defer stop()
	echo.hears(func() { s.Other.Tell(last) })
}
