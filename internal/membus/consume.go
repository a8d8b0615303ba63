package membus

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

// Consume implements transport.Bus. It takes a message off the queue only when handle is
// free, so there is nothing to hand back when ctx ends.
func (b *Bus) Consume(
	ctx context.Context, from transport.Destination, slots int, handle func(transport.Delivery),
) error {
	if err := from.Validate(); err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	if slots < 1 || slots > transport.MaxSlots {
		return fmt.Errorf("consume %s: %w: %d slots, allowed are 1 to %d", from, transport.ErrInvalid, slots, transport.MaxSlots)
	}
	c := &consumer{bus: b, wake: make(chan struct{}, 1), slots: slots}
	b.mu.Lock()
	c.queue = b.queue(from)
	c.queue.waiters[c.wake] = struct{}{}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(c.queue.waiters, c.wake)
		b.mu.Unlock()
	}()
	for {
		d, err := c.take(ctx)
		if err != nil {
			return err
		}
		if d == nil {
			return nil
		}
		handle(d)
	}
}

// consumer is one Consume call; held is under the bus's mu.
type consumer struct {
	bus   *Bus
	queue *queue
	wake  chan struct{}
	slots int
	held  int
}

// take is the next delivery; nil when ctx has ended, ErrClosed when the bus has.
func (c *consumer) take(ctx context.Context) (*delivery, error) {
	for {
		if ctx.Err() != nil {
			return nil, nil
		}
		select {
		case <-c.bus.closed:
			return nil, transport.ErrClosed
		default:
		}
		if d := c.try(time.Now()); d != nil {
			return d, nil
		}
		select {
		case <-ctx.Done():
		case <-c.bus.closed:
		case <-c.wake:
		}
	}
}

// try delivers a due message if there is one and a slot is free.
func (c *consumer) try(now time.Time) *delivery {
	c.bus.mu.Lock()
	defer c.bus.mu.Unlock()
	if c.held >= c.slots {
		return nil
	}
	e := c.queue.due(now)
	if e == nil {
		return nil
	}
	e.count++
	c.held++
	c.queue.postpone(e, now.Add(c.bus.cfg.AckWait))
	return &delivery{c: c, e: e, msg: e.msg, count: e.count}
}

// delivery is one delivery; done is under the bus's mu.
type delivery struct {
	c     *consumer
	e     *entry
	msg   transport.Message
	count int
	done  bool
}

var _ transport.Delivery = (*delivery)(nil)

func (d *delivery) Message() *transport.Message { return &d.msg }

func (d *delivery) Err() error { return d.e.err }

func (d *delivery) Count() int { return d.count }

func (d *delivery) Ack() error { return d.finish(d.c.queue.remove) }

func (d *delivery) Term(string) error { return d.finish(d.c.queue.remove) }

func (d *delivery) Nak(delay time.Duration) error {
	until := time.Now().Add(max(delay, transport.MinNakDelay))
	return d.finish(func(e *entry) { d.c.queue.postpone(e, until) })
}

func (d *delivery) InProgress() error {
	b := d.c.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.done {
		return transport.ErrFinished
	}
	d.c.queue.postpone(d.e, time.Now().Add(b.cfg.AckWait))
	return nil
}

// finish frees the slot; the effect of say on the message may be lost.
func (d *delivery) finish(say func(*entry)) error {
	b := d.c.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.done {
		return transport.ErrFinished
	}
	d.done = true
	if d.c.held == d.c.slots {
		d.c.queue.wake()
	}
	d.c.held--
	n := d.e.ends
	d.e.ends++
	if b.cfg.Loss == 0 || !(dice{seed: b.cfg.Seed, id: d.msg.ID(), n: n}).falls(loseAck, b.cfg.Loss) {
		say(d.e)
	}
	return nil
}
