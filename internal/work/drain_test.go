package work

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// T10: a drain lets handlers finish, and hands back what does not.
func TestT10DrainHandsBackWhatDoesNotFinish(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		publication int
		class       effects.Class
		parked      bool
	}{
		"finishes":          {1, effects.Pure, false},
		"not leased":        {1, effects.Pure, false},
		"a function":        {1, "", false},
		"leased":            {2, effects.Pure, false},
		"idempotent inside": {1, effects.Idempotent, false},
		"guarded inside":    {1, effects.Guarded, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := newHouse(t)
				inside, release := make(chan struct{}), make(chan struct{})
				if name != "finishes" {
					h.cfg.Drain = 20 * time.Millisecond
				}
				var cause atomic.Value
				long := func(ctx context.Context, _ int) (int, error) {
					close(inside)
					select {
					case <-release:
						return 1, nil
					case <-ctx.Done():
					}
					cause.Store(context.Cause(ctx))
					return 0, errors.New("interrupted")
				}
				if c.class != "" {
					workers.Handle(h.reg, "long", long, workers.Class(c.class))
				} else {
					workers.HandleDurable(h.reg, "long", func(ctx context.Context, in int) (int, error) {
						err := workers.Compensate(ctx, "a", func(context.Context) error { t.Error("it is undone"); return nil })
						_, _ = long(ctx, in)
						_, more := effects.Do(ctx, "more", never)
						return 0, errors.Join(err, more)
					})
				}
				h.open()
				q := ask("long", 1, `1`)
				q.Attempt = q.Attempts // which would be undone if it failed
				h.ask(q, c.publication)
				<-inside
				h.stop()
				if name == "finishes" {
					close(release)
					_, hint := h.answer()
					require.Equal(t, 200, hint.Response.Code)
					require.NoError(t, h.closed())
					require.Zero(t, h.bus.Len(transport.ToWork("long")))
					return
				}
				require.NoError(t, h.closed())
				require.ErrorIs(t, cause.Load().(error), workers.ErrDraining)
				if c.parked {
					_, hint := h.answer()
					require.Equal(t, journal.ResponseParked, hint.Response.Kind)
					return
				}
				h.silent()
				runs, live := h.store.Leased(guid(t, q))
				require.Equal(t, []any{1, 0, false}, []any{h.bus.Len(transport.ToWork("long")), runs, live}, "it waits for another worker, and is not counted")
			})
		})
	}
}

func TestT10DrainIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		h.cfg.ResponseWait = 200 * time.Millisecond
		h.cfg.Drain, h.cfg.Grace = 20*time.Millisecond, 60*time.Millisecond
		inside, release := make(chan struct{}), make(chan struct{})
		workers.Handle(h.reg, "stuck", func(context.Context, int) (int, error) {
			close(inside)
			<-release
			return 1, nil
		})
		rt, err := NewRuntime(h.cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { h.ended <- rt.Run(ctx) }()
		q := ask("stuck", 1, `1`)
		h.ask(q, 2)
		<-inside
		cancel()
		require.ErrorContains(t, h.closed(), "still run")
		require.Equal(t, 1, h.bus.Len(transport.ToWork("stuck")))
		require.Eventually(t, func() bool {
			runs, live := h.store.Leased(guid(t, q))
			return runs == 0 && !live
		}, calm/6, time.Millisecond, "handed back, long before the next tick would have been due")
		require.ErrorIs(t, rt.Run(t.Context()), ErrRunning)
		close(release)
		rt.active.Wait()
		require.NoError(t, h.bus.Close())
	})
}

// quiet is a bus whose PubAcks fail or never come.
type quiet struct {
	transport.Bus
	lost    atomic.Int32 // number of sends to lose
	silence bool         // do not call done for them
	err     error        // their error; nil: the bus is away
}

func (q *quiet) Send(ctx context.Context, msgs []transport.Message, done func(int, error)) error {
	if q.lost.Add(-1) < 0 {
		return q.Bus.Send(ctx, msgs, done)
	}
	if !q.silence {
		done(0, cmp.Or(q.err, transport.ErrUnavailable))
	}
	return nil
}

// E7: a request whose response is not acknowledged comes again. A run whose response nobody takes is
// not counted, and its lease ends: full lanes are backpressure, and no handler that kills its
// process (T5). A response that no bus can ever take is no outage: its runs are counted, so that
// the request becomes stuck, with a dead letter (E9).
func TestE7AResponseThatIsNotHeard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		publication int // the second one is leased
		silence     bool
		err         error
		counted     int
	}{
		"refused":    {1, false, nil, 1},
		"never told": {1, true, nil, 1},
		"full lanes": {2, false, transport.ErrFull, 1},
		"too large":  {2, false, transport.ErrTooLarge, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := newHouse(t)
				h.cfg.ResponseWait = 200 * time.Millisecond // for the PubAck that never comes
				bus := &quiet{Bus: h.bus, silence: c.silence, err: c.err}
				bus.lost.Store(1)
				h.cfg.Bus = bus
				var calls atomic.Int32
				workers.Handle(h.reg, "count", func(context.Context, int) (int32, error) { return calls.Add(1), nil })
				h.open()
				q := ask("count", 1, `1`)
				h.ask(q, c.publication)
				m, hint := h.answer()
				require.Equal(t, "2", string(hint.Response.Output))
				require.Equal(t, c.publication, m.Header.Publication)
				runs, _ := h.store.Leased(guid(t, q))
				require.Equal(t, c.counted, runs, "of two")
				h.gone("count")
			})
		})
	}
}

// The grace begins when the context ends, even if that is before the pulse knows of the
// handler.
func TestTheGraceOfAContextThatEndedAtOnce(t *testing.T) {
	t.Parallel()
	r := &run{rt: &Runtime{cfg: Config{AckWait: calm, Grace: 20 * time.Millisecond}}, began: time.Now()}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, ticked := &r.pulse, make(chan struct{}, 1)
	p.r, p.timer = r, time.AfterFunc(calm/3, func() { ticked <- struct{}{} })
	defer p.stop()
	p.hurry()
	p.mu.Lock()
	r.ctx, p.running = ctx, true
	p.mu.Unlock()
	select {
	case <-ticked:
	case <-time.After(calm / 6):
		require.Fail(t, "no tick: the grace is a third of the ack wait")
	}
}

func TestRunReturnsWhenTheBusIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		workers.HandleRaw(h.reg, "echo", echo)
		rt, err := NewRuntime(h.cfg)
		require.NoError(t, err)
		go func() { h.ended <- rt.Run(t.Context()) }()
		h.send(ask("echo", 1, `1`), 1)
		h.gone("echo")
		require.NoError(t, h.bus.Close())
		require.ErrorIs(t, h.closed(), transport.ErrClosed)
	})
}

func TestT11NeverMoreThanTheConcurrency(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		var now, most atomic.Int32
		inside, release := make(chan struct{}, 100), make(chan struct{})
		workers.Handle(h.reg, "slow", func(context.Context, int) (int, error) {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				continue
			}
			inside <- struct{}{}
			<-release
			now.Add(-1)
			return 1, nil
		}, workers.Concurrency(3))
		h.open()
		for i := range byte(20) {
			q := ask("slow", i, `1`)
			h.ask(q, 1)
		}
		for range 3 {
			<-inside
		}
		close(release)
		for range 20 {
			h.answer()
		}
		require.EqualValues(t, 3, most.Load())
	})
}
