package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/local"
	"github.com/quipu-journal/quipu/internal/session"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
)

// Times of all processes. They are short, so that runs are, too.
const (
	ackWait = 2 * time.Second
	lease   = 3 * time.Second
	resend  = 1500 * time.Millisecond
)

// process is one life of an engine, of workers, of both, or of the clients.
type process struct {
	world  *world
	slot   int
	number int // of this life, counted within the slot
	name   string
	role   role

	dead   atomic.Bool
	paused atomic.Bool
	stop   context.CancelFunc

	committer *engine.Committer // of this life

	mu   sync.Mutex
	txs  []*committer
	here *local.Bus // nil: it hands nothing over
}

// role is the configuration of the processes of a slot.
type role struct {
	engine  bool
	workers bool
	cfg     engine.Config // modes and limits
	slots   int           // of each topic
	local   bool          // it hands requests over to its own handlers (W7)
	early   bool          // these begin before their causes have committed (L4)
}

// lives is more than the number of lives of a slot.
const lives = 1000

// born starts the next life of a slot.
func (w *world) born(slot int) {
	old := w.processes[slot]
	p := &process{world: w, slot: slot, number: slot * lives, role: old.role}
	if old.world != nil {
		p.number = old.number + 1
	}
	p.name = fmt.Sprintf("p%d.%d", slot, p.number%lives)
	w.processes[slot] = p
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	if slot > 0 { // the first are the clients
		w.running.Go(func() { p.run(ctx) })
	}
}

// gone says that the process died: nothing it does has an effect any more.
func (p *process) gone() bool { return p.dead.Load() }

// park stops a goroutine of a dead process until the run is over.
func (p *process) park() error {
	<-p.world.gate.over
	return errOver
}

// run starts engine and workers, and again whenever they end.
func (p *process) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.serve(ctx); err != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// config is the configuration of the process's committer, without a bus.
func (p *process) config() engine.Config {
	cfg := p.role.cfg
	cfg.Committers, cfg.Aside = 1, 1 // with several loops, the free one takes a call: no seed could decide that
	cfg.Store, cfg.Space, cfg.Lanes, cfg.Writer, cfg.Jitter = &port{Store: p.world.store, p: p}, space, p.world.lanes,
		p.name, p.jitter
	cfg.Lease = lease
	if !p.world.weather.ownFlows {
		cfg.Flows = p.world.plan.compiled
	}
	return cfg
}

// client is the clients' committer. With a bus it publishes what they start.
func (w *world) client(label string, publish bool) *engine.Committer {
	p := w.processes[0]
	cfg := p.config()
	cfg.Store = &port{Store: w.store, p: p, label: label}
	cfg.Resend, cfg.Committers, cfg.NoFold = resend, 1, !publish
	if publish {
		cfg.Bus = &bus{&servers{w.bus, p}, p}
	}
	ctx := context.Background()
	for {
		c, err := engine.NewCommitter(ctx, cfg)
		if err == nil {
			go func() {
				ctx, stop := context.WithCancel(ctx)
				defer stop()
				go func() { <-w.gate.over; stop() }()
				_ = c.Run(ctx)
			}()
			return c
		}
		if errors.Is(err, errOver) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (p *process) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 3)
	n := 1
	cfg := p.config()
	is := store.Process{Name: p.name, Lease: lease}
	if p.role.local && p.role.early {
		cfg.Early, is.Early = early.NewTopics(), topics
	}
	own := session.New(session.Config{
		Store: &port{Store: p.world.store, p: p}, Process: is, Suspend: cfg.Early.Suspend,
	})
	cfg.Session = own
	cfg.Bus = &bus{&servers{p.world.bus, p}, p}
	if p.role.local {
		here := local.New(&servers{p.world.bus, p}, p.name)
		p.mu.Lock()
		p.here = here
		p.mu.Unlock()
		cfg.Bus, cfg.Local = &bus{here, p}, here
		if p.role.early {
			cfg.Local = &beginner{here, p}
		}
	}
	c, err := engine.NewCommitter(ctx, cfg)
	if err != nil {
		return err
	}
	p.committer = c
	defer p.join(ctx, own)()
	go func() { done <- c.Run(ctx) }()
	if p.role.engine {
		eng, err := engine.Over(c)
		if err != nil {
			panic(err)
		}
		n++
		go func() { done <- eng.Run(ctx) }()
	}
	if p.role.workers {
		rt, err := work.NewRuntime(work.Config{
			Registry: p.registry(), Bus: cfg.Bus, Store: hands{c.Worker(), p}, Space: space, Lanes: p.world.lanes,
			DeadLetter: hands{c.Worker(), p}.DeadLetter, Session: own, AckWait: ackWait, ResponseWait: time.Second,
			Drain: 100 * time.Millisecond,
			Grace: 500 * time.Millisecond, Holder: p.name, Concurrency: p.role.slots, Logger: quiet,
			Observer: watcher{}, Early: cfg.Early,
		})
		if err != nil {
			panic(err)
		}
		n++
		go func() { done <- rt.Run(ctx) }()
	}
	var first error
	for range n {
		if err := <-done; err != nil && first == nil {
			first = err
		}
		cancel()
	}
	return first
}

// beginner makes the beginning of an early run a call that waits at the gate.
type beginner struct {
	*local.Bus
	p *process
}

// Begin implements engine.Local.
func (b *beginner) Begin(m *transport.Message, cause *early.Cause) (func(), error) {
	run, err := b.Bus.Begin(m, cause)
	if err != nil {
		return nil, err
	}
	name := "begin " + short(m.Header.GUID) + "." + m.Holder
	return func() {
		_ = b.p.world.gate.pass(context.Background(), b.p, kindBody, name)
		run()
	}, nil
}

// idles says that every slot is free that the process has for what it hands over; it has no work.
func (p *process) idles() bool {
	p.mu.Lock()
	here := p.here
	p.mu.Unlock()
	if here == nil || !p.role.workers {
		return true
	}
	want := p.role.slots - max(1, p.role.slots/4)
	for _, topic := range topics {
		free := 0
		for ok := true; ok; {
			if _, ok = here.Take(topic); ok {
				free++
			}
		}
		for range free {
			here.Drop(topic)
		}
		if free != want {
			return false
		}
	}
	return true
}

// join opens and keeps the session of a process with handlers; leave ends it.
func (p *process) join(ctx context.Context, own *session.Keeper) (leave func()) {
	if !p.role.workers {
		return func() {}
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	opened, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- own.Run(keeping, opened) }()
	select {
	case <-opened:
	case <-ctx.Done():
	}
	return func() { stop(); <-ended }
}

var quiet = slog.New(slog.DiscardHandler)

// watcher distinguishes the calls of one run of a handler from those of another run of the same
// request: the name of the delivery is passed as its traceparent.
type watcher struct{ observer.Nop }

type runKey struct{}

// Attempt implements observer.Observer.
func (watcher) Attempt(
	ctx context.Context, trace string, _ observer.Subject,
) (context.Context, func(error, []observer.Span)) {
	return context.WithValue(ctx, runKey{}, trace), func(error, []observer.Span) {}
}

// jitter differs between processes and moments, but is the same in every run of a seed, whoever
// asks first.
func (p *process) jitter(below time.Duration) time.Duration {
	h := uint64(14695981039346656037)
	var text [80]byte
	b := append(strconv.AppendUint(text[:0], p.world.seed, 10), p.name...)
	b = append(strconv.AppendInt(b, time.Now().UnixNano(), 10), ' ')
	for _, c := range strconv.AppendInt(b, int64(below), 10) {
		h = (h ^ uint64(c)) * prime
	}
	return time.Duration(h % uint64(below))
}

// die ends a process: its connections break, and none of its calls passes any more.
func (w *world) die(p *process) {
	w.note("dies", p.name)
	p.dead.Store(true)
	p.paused.Store(false)
	w.gate.remove(p)
	p.stop()
	p.mu.Lock()
	txs := p.txs
	p.mu.Unlock()
	for _, tx := range txs {
		tx.cut()
	}
	w.after(w.between(10*time.Millisecond, 6*time.Second), func() { w.follow(p) })
}

// follow starts the life after p, if none has begun.
func (w *world) follow(p *process) {
	if w.processes[p.slot] == p {
		w.born(p.slot)
	}
}

// drain asks processes to stop, at times when most have work. The next life of a slot begins while
// the one before hands back what it has, or after it has ended.
func (w *world) drain(dice *rand.Rand) {
	for range w.features.drains {
		slot := 1 + dice.IntN(len(w.processes)-1)
		next := time.Duration(dice.IntN(2) * dice.IntN(int(2*time.Second)))
		w.after(time.Duration(dice.IntN(int(8*time.Second))), func() {
			p := w.processes[slot]
			w.note("drains", p.name)
			p.stop()
			w.after(next, func() { w.follow(p) })
		})
	}
}

// halt stops a process, mostly for longer than ack wait and lease (F2).
func (w *world) halt(p *process) {
	w.note("stands still", p.name)
	p.paused.Store(true)
	w.after(w.between(100*time.Millisecond, 10*time.Second), func() { p.paused.Store(false) })
}
