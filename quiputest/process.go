package quiputest

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// process is a worker process with its own registry and ports. Once it is dead, calls of the
// store fail, messages are not sent, deliveries are not finished, and a handler's code ends at
// its next call.
type process struct {
	w        *World
	register []func(*workers.Registry)
	topics   []string
	session  *session
	dead     atomic.Bool
	stop     context.CancelFunc
	done     chan error // receives the error of Run
}

// errDead is the error of the ports of a dead process.
var errDead = fmt.Errorf("%w: the process is dead", store.ErrUnavailable)

type processKey struct{}

// begin starts a process with the handlers.
func (w *World) begin(register []func(*workers.Registry)) (*process, error) {
	reg := workers.New()
	for _, add := range register {
		add(reg)
	}
	p := &process{w: w, register: register, topics: reg.Topics(), done: make(chan error, 1)}
	own, err := w.store.OpenSession(context.Background(), store.Process{Lease: lease})
	if err != nil {
		return nil, err
	}
	p.session = &session{Session: own, p: p}
	rt, err := work.NewRuntime(work.Config{
		Registry: reg, Bus: &bus{Bus: w.bus, w: w, p: p}, Store: &workerStore{Worker: w.eng.Committer().Worker(), p: p},
		Space: space, Epoch: w.eng.Publisher().Epoch.Load, Lanes: lanes,
		Session: p.session, AckWait: ackWait, ResponseWait: ackWait / 2,
		Standing: w.cfg.standing, Holder: fmt.Sprintf("worker-%d", w.processes.Add(1)), Observer: &w.bodies, Logger: w.log,
		DeadLetter: func(ctx context.Context, d collation.DeadLetter, raw []byte) error {
			if err := p.alive(ctx); err != nil {
				return err
			}
			return w.eng.Committer().DeadLetter(ctx, d, raw)
		},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), processKey{}, p))
	p.stop = cancel
	go func() {
		err := rt.Run(ctx)
		if !p.dead.Load() {
			p.session.end()
		}
		p.done <- err
	}()
	return p, nil
}

// drain ends the process as SIGTERM does. An error says that handlers still run.
func (p *process) drain() error {
	p.stop()
	return <-p.done
}

// die kills the process. Another one with the same handlers takes its place; what it held is free
// when its session is over.
func (p *process) die() {
	if p.dead.Swap(true) {
		return
	}
	p.stop()
	p.w.ends.tell()
	time.AfterFunc(lease, p.session.end)
	p.w.replace(p)
}

// alive returns an error once the process is dead. If ctx is a handler's, it ends the goroutine
// instead, so that nothing after the call happens.
func (p *process) alive(ctx context.Context) error {
	if !p.dead.Load() {
		return nil
	}
	if workers.Info(ctx).Request != "" {
		runtime.Goexit()
	}
	return errDead
}

// pass passes a boundary, where the process may die.
func (p *process) pass(ctx context.Context, at func(*crash) boundary) error {
	if c := p.w.crash; c != nil {
		p.reach(at(c))
	}
	return p.alive(ctx)
}

// reach reports a boundary. The process may be dead afterwards.
func (p *process) reach(b boundary) {
	if !p.dead.Load() && p.w.crash.reach(b) {
		p.die()
	}
}

// bus is the bus for the engine or for a worker process p.
type bus struct {
	transport.Bus
	w *World
	p *process // nil: the engine
}

// RemoveStale implements transport.Bus: no queue of a world is bounded, and nobody has to look every ten
// seconds of a year.
func (b *bus) RemoveStale(
	ctx context.Context, _ time.Duration, _ func(context.Context, []transport.Message) ([]bool, error),
) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// Consume implements transport.Bus.
func (b *bus) Consume(
	ctx context.Context, from transport.Destination, slots int, handle func(transport.Delivery),
) error {
	return b.Bus.Consume(ctx, from, slots, func(d transport.Delivery) {
		if c := b.w.crash; c != nil && b.p != nil {
			if where, ok := c.requested(b.w, d); ok {
				b.p.reach(where)
			}
			if b.p.dead.Load() {
				return
			}
		}
		handle(&delivery{Delivery: d, b: b})
	})
}

// Send implements transport.Bus. A worker sends its response, one at a time.
func (b *bus) Send(ctx context.Context, msgs []transport.Message, done func(i int, err error)) error {
	c := b.w.crash
	if c == nil || b.p == nil {
		return b.Bus.Send(ctx, msgs, done)
	}
	where, known := c.answering(msgs)
	if known {
		b.p.reach(where)
	}
	if b.p.dead.Load() {
		go func() {
			for i := range msgs {
				done(i, errDead)
			}
		}()
		return errDead
	}
	return b.Bus.Send(ctx, msgs, func(i int, err error) {
		if known && err == nil {
			b.p.reach(where.at(pointAnswered))
		}
		if b.p.dead.Load() {
			err = errDead
		}
		done(i, err)
	})
}

// delivery is one delivery to a consumer of the bus.
type delivery struct {
	transport.Delivery
	b *bus
}

func (d *delivery) finish(say func() error) error {
	if d.b.p != nil && d.b.p.dead.Load() {
		return errDead
	}
	defer d.b.w.hub.tell()
	return say()
}

// Ack implements transport.Delivery.
func (d *delivery) Ack() error { return d.finish(d.Delivery.Ack) }

// Term implements transport.Delivery.
func (d *delivery) Term(reason string) error {
	return d.finish(func() error { return d.Delivery.Term(reason) })
}

// Nak implements transport.Delivery.
func (d *delivery) Nak(delay time.Duration) error {
	return d.finish(func() error { return d.Delivery.Nak(delay) })
}

// InProgress implements transport.Delivery.
func (d *delivery) InProgress() error {
	if d.b.p != nil && d.b.p.dead.Load() {
		return errDead
	}
	return d.Delivery.InProgress()
}
