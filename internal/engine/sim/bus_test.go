package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/internal/local"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
)

// bus is the bus of one process: every call waits at the gate. Below it there may be a local bus,
// which hands messages over within the process (W7), and then the servers'.
type bus struct {
	transport.Bus
	p *process
}

// servers is the bus of the world for one process.
type servers struct {
	*membus.Bus
	p *process
}

var (
	_ transport.Bus = (*bus)(nil)
	_ transport.Bus = (*servers)(nil)
	_ local.Yielder = (*servers)(nil)
)

// post stands between the bus in memory and the consumers. The simulator decides which consumer
// gets a message, and when.
type post struct {
	mu        sync.Mutex
	feeders   []*feeder   // one for each destination
	consumers []*consumer // by destination and process
}

// feeder takes messages from its destination, one at a time.
type feeder struct {
	to    transport.Destination
	name  string
	count int
	ready transport.Delivery // waits to be given to a consumer
	taken chan struct{}
}

// consumer is one running Consume.
type consumer struct {
	p     *process
	from  transport.Destination
	slots int
	held  int
	taken int              // slots that its process uses for what it hands over (W7)
	open  int              // messages that it has asked for and not got
	ready bool             // it can take a message
	guids map[[16]byte]int // of the messages that it holds
	in    chan transport.Delivery
}

// feed starts the feeders; they end with ctx.
func (w *world) feed(ctx context.Context) {
	for _, d := range w.destinations() {
		f := &feeder{to: d, name: d.String(), taken: make(chan struct{})}
		w.post.feeders = append(w.post.feeders, f)
		w.running.Go(func() {
			_ = w.bus.Consume(ctx, d, transport.MaxSlots, func(in transport.Delivery) {
				w.post.mu.Lock()
				f.ready = in
				f.count++
				w.post.mu.Unlock()
				w.gate.wake()
				select {
				case <-f.taken:
				case <-w.gate.over:
				}
			})
		})
	}
}

// hand gives the message that waits at f to a consumer.
func (w *world) hand(f *feeder, c *consumer) {
	w.post.mu.Lock()
	d := &delivery{Delivery: f.ready, c: c, name: f.name + "#" + strconv.Itoa(f.count), msg: *f.ready.Message()}
	if f.to.Kind == transport.Work {
		d.msg.Header.Traceparent = d.name
	}
	c.guids[d.msg.Header.GUID]++
	f.ready = nil
	c.held++
	c.open--
	c.ready = false
	w.post.mu.Unlock()
	f.taken <- struct{}{}
	c.in <- d
}

// takes says whether the consumer can take the message that waits at f. It cannot take a start
// that it already holds: which of the two comes first in a batch would depend on the schedule of
// goroutines.
func (c *consumer) takes(f *feeder) bool {
	return c.from == f.to && c.ready && c.open > 0 && !c.p.gone() && !c.p.paused.Load() &&
		(f.to.Kind != transport.Start || c.guids[f.ready.Message().Header.GUID] == 0)
}

// asks asks for as many messages as there are free slots, like a pull. What it has asked for comes,
// although slots are taken meanwhile. The caller has the lock of the post.
func (c *consumer) asks() { c.open = max(c.open, c.slots-c.held-c.taken) }

// Yield implements local.Yielder.
func (b *servers) Yield(from transport.Destination, n int) {
	post := &b.p.world.post
	post.mu.Lock()
	defer post.mu.Unlock()
	for _, c := range post.consumers {
		if c.p == b.p && c.from == from {
			c.taken += n
			c.asks()
		}
	}
}

// Consume implements transport.Bus. If messages are handed over within the process, all messages
// of a lane go through the gate, one after another, so that the seed decides which of them meet
// in a batch.
func (b *bus) Consume(
	ctx context.Context, from transport.Destination, slots int, handle func(transport.Delivery),
) error {
	return b.Bus.Consume(ctx, from, slots, func(d transport.Delivery) {
		if _, here := b.Bus.(*local.Bus); here && from.Kind == transport.Lane {
			h := &d.Message().Header
			_ = b.p.world.gate.pass(context.Background(), b.p, kindBody,
				"take "+from.String()+":"+short(h.GUID)+"."+strconv.Itoa(h.Publication))
		}
		handle(d)
	})
}

// Ensure implements transport.Bus.
func (b *bus) Ensure(ctx context.Context) error {
	return action(ctx, b.p, kindSend, "ensure", func() error { return b.Bus.Ensure(ctx) })
}

// Oldest implements transport.Bus.
func (b *bus) Oldest(ctx context.Context, d transport.Destination) (at int64, found bool, err error) {
	err = action(ctx, b.p, kindSend, "oldest "+d.String(), func() error {
		at, found, err = b.Bus.Oldest(ctx, d)
		return err
	})
	return at, found, err
}

// RemoveStale implements transport.Bus.
func (b *bus) RemoveStale(
	ctx context.Context, waited time.Duration, stale func(context.Context, []transport.Message) ([]bool, error),
) (n int, err error) {
	err = action(ctx, b.p, kindSend, "removeStale", func() error {
		n, err = b.Bus.RemoveStale(ctx, waited, stale)
		return err
	})
	return n, err
}

// Send implements transport.Bus. It reports its own failure by done, too.
func (b *bus) Send(ctx context.Context, msgs []transport.Message, done func(int, error)) error {
	var id strings.Builder
	id.WriteString("send")
	for i := range msgs {
		h := &msgs[i].Header
		id.WriteString(" " + msgs[i].To.String() + ":" + short(h.GUID) + "." + strconv.Itoa(h.Publication) + h.Traceparent)
		h.Traceparent = "" // of the watcher
	}
	fail := func(err error) {
		if done != nil {
			go func() {
				for i := range msgs {
					done(i, err)
				}
			}()
		}
	}
	v := b.p.world.gate.pass(ctx, b.p, kindSend, id.String())
	if !v.do {
		fail(v.err)
		return v.err
	}
	b.p.world.spoil(msgs)
	if v.err != nil { // all PubAcks are lost
		if err := b.Bus.Send(ctx, msgs, nil); err != nil {
			v.err = err
		}
		if b.p.gone() {
			return b.p.park()
		}
		fail(v.err)
		return nil
	}
	err := b.Bus.Send(ctx, msgs, b.p.world.acks.tells(msgs, done))
	if b.p.gone() {
		return b.p.park()
	}
	return err
}

// Answer implements work.Beside, where the process hands over within itself.
func (b *bus) Answer(m *transport.Message, x *store.Completion) bool {
	here, is := b.Bus.(*local.Bus)
	if !is || !b.p.world.gate.pass(context.Background(), b.p, kindBody, "answer "+short(m.Header.GUID)).do {
		return false
	}
	m.Header.Traceparent = "" // of the watcher
	return here.Answer(m, x)
}

// Consume implements transport.Bus.
func (b *servers) Consume(
	ctx context.Context, from transport.Destination, slots int, handle func(transport.Delivery),
) error {
	post := &b.p.world.post
	c := &consumer{
		p: b.p, from: from, slots: slots, open: slots, ready: true, guids: map[[16]byte]int{},
		in: make(chan transport.Delivery, 1),
	}
	post.mu.Lock()
	at, _ := slices.BinarySearchFunc(post.consumers, c, func(a, b *consumer) int {
		return cmp.Or(cmp.Compare(a.from.String(), b.from.String()), cmp.Compare(a.p.number, b.p.number))
	})
	post.consumers = slices.Insert(post.consumers, at, c)
	post.mu.Unlock()
	b.p.world.gate.wake()
	defer func() {
		post.mu.Lock()
		post.consumers = slices.DeleteFunc(post.consumers, func(o *consumer) bool { return o == c })
		post.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case d := <-c.in:
			handle(d)
		}
		post.mu.Lock()
		c.ready = true
		post.mu.Unlock()
	}
}

// delivery is one delivery to a process.
type delivery struct {
	transport.Delivery
	c    *consumer
	name string
	msg  transport.Message
	done bool // only one call at a time passes the gate
}

// Message implements transport.Delivery.
func (d *delivery) Message() *transport.Message { return &d.msg }

// Ack implements transport.Delivery.
func (d *delivery) Ack() error { return d.finish("ack", d.Delivery.Ack) }

// Nak implements transport.Delivery.
func (d *delivery) Nak(delay time.Duration) error {
	return d.finish(fmt.Sprintf("nak %v", delay), func() error { return d.Delivery.Nak(delay) })
}

// Term implements transport.Delivery.
func (d *delivery) Term(reason string) error {
	return d.finish("term", func() error { return d.Delivery.Term(reason) })
}

// InProgress implements transport.Delivery.
func (d *delivery) InProgress() error {
	return action(context.Background(), d.c.p, kindKeep, "keep "+d.name, d.Delivery.InProgress)
}

// finish acks or rejects, which may get lost, and frees the slot.
func (d *delivery) finish(word string, say func() error) error {
	p := d.c.p
	p.world.ends(d, word)
	v := p.world.gate.pass(context.Background(), p, kindFinish, word+" "+d.name)
	if v.err == errOver { //nolint:errorlint // it is this one
		return v.err
	}
	if d.done {
		return transport.ErrFinished
	}
	d.done = true
	post := &p.world.post
	post.mu.Lock()
	d.c.held--
	d.c.asks()
	d.c.guids[d.msg.Header.GUID]--
	post.mu.Unlock()
	var err error
	if v.do {
		err = say()
	}
	if p.gone() {
		return p.park()
	}
	if err == nil {
		err = v.err // it is done but reported as failed
	}
	return err
}
