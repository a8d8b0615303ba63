package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/quipu-journal/quipu/internal/backoff"
	"github.com/quipu-journal/quipu/transport"
)

// drainWait bounds how long an ended binding waits for messages under way, to hand them
// back.
const drainWait = 2 * time.Second

// steady is how long a binding must live for its end to reset the backoff.
const steady = 10 * time.Second

// tellAgain is the pause between two warnings of a consumer that is lost again and again.
const tellAgain = time.Minute

// errGone says that nothing answers a pull.
var errGone = fmt.Errorf("%w: consumer or stream is gone", transport.ErrUnavailable)

// Consume implements transport.Bus. It binds again after any loss (T5). When ctx ends, pulled deliveries that were not
// handled get a Nak of transport.MinNakDelay.
func (b *Bus) Consume(
	ctx context.Context, from transport.Destination, slots int, handle func(transport.Delivery),
) error {
	if err := from.Validate(); err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	if slots < 1 || slots > transport.MaxSlots {
		return fmt.Errorf("consume %s: %w: %d slots, allowed are 1 to %d", from, transport.ErrInvalid, slots, transport.MaxSlots)
	}
	if err := b.enter(); err != nil {
		return err
	}
	defer b.consumers.Done()
	b.consumes(from)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()
	c := newConsumer(b, from, slots)
	b.pulling.add(c)
	defer b.pulling.remove(c)
	var supervisor sync.WaitGroup
	supervisor.Go(func() { c.supervise(ctx) })
	for {
		d := c.take(ctx)
		if d == nil {
			break
		}
		handle(d)
	}
	c.handBack()
	supervisor.Wait()
	if b.ctx.Err() != nil {
		return transport.ErrClosed
	}
	return nil
}

// pulling is the set of running Consume calls, by destination.
type pulling struct {
	mu   sync.Mutex
	from map[transport.Destination]*consumer
}

func (p *pulling) add(c *consumer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.from == nil {
		p.from = make(map[transport.Destination]*consumer)
	}
	p.from[c.from] = c
}

func (p *pulling) remove(c *consumer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.from[c.from] == c {
		delete(p.from, c.from)
	}
}

// Yield takes n slots from the running Consume of a destination, or gives them back if n
// is negative; the bus pulls accordingly less (W7). Messages of open pull requests may
// still come.
func (b *Bus) Yield(from transport.Destination, n int) {
	b.pulling.mu.Lock()
	c := b.pulling.from[from]
	b.pulling.mu.Unlock()
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.yielded = max(c.yielded+n, 0); n < 0 {
		c.request()
	}
}

// consumer is one Consume call. Its invariant (T5, T11): held + requested ≤ slots. New
// requests leave the yielded slots free.
type consumer struct {
	bus   *Bus
	from  transport.Destination
	slots int
	ready chan struct{} // capacity 1: the queue may have something

	mu        sync.Mutex
	queue     []*delivery  // pulled, not yet handled; they count as held
	held      int          // pulled and not finished
	requested int          // requested from the server and not delivered
	yielded   int          // slots in other use
	binding   *binding     // nil while there is none
	lane      *pin         // nil where deliveries are not of a lane
	pulls     atomic.Int64 // number of the latest pull
	ending    bool         // ctx ended: hand back later messages
}

func newConsumer(b *Bus, from transport.Destination, slots int) *consumer {
	c := &consumer{bus: b, from: from, slots: slots, ready: make(chan struct{}, 1)}
	if from.Kind == transport.Lane {
		c.lane = &pin{}
	}
	return c
}

// take is the next delivery, nil when ctx has ended.
func (c *consumer) take(ctx context.Context) *delivery {
	for ctx.Err() == nil {
		c.mu.Lock()
		if len(c.queue) > 0 {
			d := c.queue[0]
			c.queue[0] = nil
			c.queue = c.queue[1:]
			c.mu.Unlock()
			return d
		}
		c.queue = nil
		c.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-c.ready:
		}
	}
	return nil
}

// handBack ends pulling and hands back the queued deliveries.
func (c *consumer) handBack() {
	c.mu.Lock()
	c.ending = true
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()
	for _, d := range queue {
		_ = d.Nak(transport.MinNakDelay) // if lost, the message comes again after the ack wait
	}
}

// finished frees a slot and requests the next message at once.
func (c *consumer) finished() {
	c.mu.Lock()
	c.held--
	c.request()
	c.mu.Unlock()
}

// request keeps a pull open while slots are free. If one is open already it waits until
// half the slots are free, so that under load messages are pulled in batches. The caller
// holds mu.
func (c *consumer) request() {
	free := c.slots - c.held - c.requested - c.yielded
	if c.binding == nil || c.ending || free <= 0 {
		return
	}
	if c.requested > 0 && free < (c.slots+1)/2 {
		return
	}
	if err := c.binding.pull(free); err != nil {
		c.binding.fail(err)
		return
	}
	c.requested += free
}

// accept queues a message of binding from, or hands it back if that binding is no longer
// the current one.
func (c *consumer) accept(from *binding, msg *natsgo.Msg) {
	d := newDelivery(c, msg)
	c.mu.Lock()
	if c.ending || c.binding != from || c.requested <= 0 {
		c.mu.Unlock()
		_ = d.publish(nakPayload(transport.MinNakDelay)) // if lost, the message comes again after the ack wait
		return
	}
	c.requested--
	if errors.Is(d.err, transport.ErrForged) || errors.Is(d.err, transport.ErrNoKey) {
		c.request()
		c.mu.Unlock()
		c.bus.refuse(d)
		return
	}
	c.held++
	c.queue = append(c.queue, d)
	c.request()
	c.mu.Unlock()
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// expired frees the pending messages of a pull request that ended.
func (c *consumer) expired(from *binding, pending int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.binding != from {
		return
	}
	c.requested = max(c.requested-pending, 0)
	c.request()
}

// waiting says whether a pull of this binding is open, so that heartbeats are due.
func (c *consumer) waiting(from *binding) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.binding == from && c.requested > 0
}

// supervise binds, and binds again after every loss, until ctx ends (T5).
func (c *consumer) supervise(ctx context.Context) {
	var told time.Time
	for losses := 0; ctx.Err() == nil; losses++ {
		began := time.Now()
		err := c.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steady {
			losses = 0
		}
		if errors.Is(err, errAside) {
			c.bus.cfg.Log.Debug("a lane is left to another engine", "space", c.bus.cfg.Space, "from", c.from.String())
			sleep(ctx, asideFor+rand.N(asideFor))
			continue
		}
		most := backoffMax
		if c.bus.cfg.LeaveStreams {
			most = askedMax // it waits for an engine
		}
		pause := backoff.Delay(losses, backoffFirst, most, rand.N[time.Duration])
		level, text := slog.LevelDebug, "consumer lost, binding again"
		if losses == 0 || time.Since(told) >= tellAgain {
			level, told = slog.LevelWarn, time.Now()
		}
		if c.bus.cfg.LeaveStreams && errors.Is(err, errGone) {
			text = "a topic has no consumer: an engine of the space makes it, and is asked again"
		}
		c.bus.cfg.Log.Log(ctx, level, text, "space", c.bus.cfg.Space, "from", c.from.String(), "wait", pause, "error", err)
		sleep(ctx, pause)
	}
}

// session is the life of one binding; it returns why it ended.
func (c *consumer) session(ctx context.Context) error {
	if err := c.bus.link.wait(ctx); err != nil {
		return err
	}
	breaks := c.bus.link.breaks()
	if err := c.bus.ensureBeforeBreak(ctx, breaks, c.from); err != nil {
		return err
	}
	bound, err := bind(c)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.binding, c.requested = bound, 0
	c.request()
	c.mu.Unlock()
	err = bound.watch(ctx, breaks)
	c.mu.Lock()
	c.binding, c.requested = nil, 0
	c.mu.Unlock()
	bound.drain(breaks)
	if ctx.Err() != nil || errors.Is(err, errAside) {
		c.unpin()
	}
	return err
}
