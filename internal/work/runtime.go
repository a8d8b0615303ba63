package work

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// ErrRunning is returned by a second Run.
var ErrRunning = errors.New("the runtime ran already: make a new one")

// Runtime serves the handlers of one registry. Make one with NewRuntime.
type Runtime struct {
	cfg      Config
	handlers []*port.Handler
	watch    watch
	inline   int
	started  atomic.Bool
	runs     atomic.Uint64  // source of the numbers in holder names
	active   sync.WaitGroup // two for each run, see accept
	beside   Beside         // the engine of this process; nil: there is none
	hold     time.Duration  // see effect.Config
	standing standing
	base     context.Context // parent of every run's context; set by Run

	mu    sync.Mutex
	stops map[string]context.CancelFunc // by topic: ends its pulling; nil for one that was withdrawn
}

// NewRuntime checks config and registry and reports every mistake in them.
func NewRuntime(cfg Config) (*Runtime, error) {
	cfg, err := cfg.normalise()
	if err != nil {
		return nil, err
	}
	handlers, verifiers, err := port.Registered(cfg.Registry)
	if err != nil {
		return nil, err
	}
	rt := &Runtime{
		cfg: cfg, handlers: handlers, inline: wire.Inline(cfg.Bus.MaxPayload()),
		standing: standing{limit: cfg.Standing},
		watch:    watch{verifiers: verifiers, log: cfg.Logger, told: make(map[string]bool)},
		stops:    map[string]context.CancelFunc{},
	}
	if b, is := cfg.Bus.(Beside); is {
		rt.beside, rt.hold = b, maxHold
	}
	return rt, nil
}

// Run serves until ctx ends or the bus fails for good, then drains (T10). It takes no new
// requests; running handlers get Config.Drain, then their contexts end with workers.ErrDraining,
// and unfinished requests are handed back. It returns nil after a clean drain. If
// handlers ignore the end of their contexts, it returns an error at the latest Drain +
// Grace + ResponseWait after ctx ended.
func (rt *Runtime) Run(ctx context.Context) error {
	if !rt.started.CompareAndSwap(false, true) {
		return ErrRunning
	}
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(workers.ErrDraining)
	rt.base = base
	rt.watch.bodies(rt.handlers)
	defer rt.standing.close()
	pulls, ctx := errgroup.WithContext(ctx)
	for _, h := range rt.handlers {
		if h.Early {
			rt.cfg.Early.Serve(h.Topic)
		}
		slots := h.Concurrency
		if slots == 0 {
			slots = rt.cfg.Concurrency
		}
		pulls.Go(func() error {
			idle := make(chan *run)
			defer close(idle)
			ctx, stop := rt.serving(ctx, h.Topic)
			defer stop()
			err := rt.cfg.Bus.Consume(ctx, transport.ToWork(h.Topic), slots, func(d transport.Delivery) {
				rt.accept(h, d, idle)
			})
			if err != nil {
				return fmt.Errorf("serve topic %s: %w", h.Topic, err)
			}
			return nil
		})
	}
	<-ctx.Done()
	err := pulls.Wait()
	return errors.Join(err, rt.drain(stop))
}

// serving is the context in which the requests of a topic are pulled, until the topic is withdrawn.
func (rt *Runtime) serving(ctx context.Context, topic string) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if _, withdrawn := rt.stops[topic]; withdrawn {
		stop()
	}
	rt.stops[topic] = stop
	return ctx, stop
}

// Withdraw ends the serving of a topic: no request of it is taken any more, for as long as this
// Runtime runs. What runs goes on.
func (rt *Runtime) Withdraw(topic string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if stop := rt.stops[topic]; stop != nil {
		stop()
	}
	rt.stops[topic] = nil
}

// accept gives a delivery to a goroutine that waits at idle, or to a new one. A used
// goroutine has a stack of the right size already. The bus bounds their number: a
// delivery keeps its slot until it is finished.
func (rt *Runtime) accept(h *port.Handler, d transport.Delivery, idle chan *run) {
	r := &run{rt: rt, h: h, d: d, began: time.Now()}
	rt.active.Add(2) // one for the handler's return, one for the delivery's end
	if e, is := d.(early.Delivery); is {
		r.cause = e.Cause()
		e.Serve(r.serve)
		return
	}
	select {
	case idle <- r:
	default:
		go func() {
			r.serve()
			for r := range idle {
				r.serve()
			}
		}()
	}
}

func (rt *Runtime) drain(stop context.CancelCauseFunc) error {
	idle := make(chan struct{})
	go func() { rt.active.Wait(); close(idle) }()
	within := func(limit time.Duration) bool {
		select {
		case <-idle:
			return true
		case <-time.After(limit):
			return false
		}
	}
	if within(rt.cfg.Drain) {
		return nil
	}
	stop(workers.ErrDraining)
	if within(rt.cfg.Grace + rt.cfg.ResponseWait) {
		return nil
	}
	return fmt.Errorf("drain: handlers still run %v after their contexts ended; their requests were handed back", rt.cfg.Grace+rt.cfg.ResponseWait)
}
