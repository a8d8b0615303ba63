package local

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/traffic"
	"github.com/quipu-journal/quipu/transport"
)

// ErrNotServed is the outcome of a request for which Take reserved a slot, when this
// process no longer serves its topic: hand the row back.
var ErrNotServed = errors.New("the topic is not served in this process any more")

// sendWait bounds the Send of a message that goes back to the bus beneath.
const sendWait = 5 * time.Second

// Yielder is a bus that can pull less while other deliveries use slots of a Consume.
type Yielder interface {
	// Yield says that n more slots of the running Consume are in use; a negative n frees
	// them.
	Yield(from transport.Destination, n int)
}

// Bus is a transport.Bus that decorates another. Make one with New.
type Bus struct {
	transport.Bus // the bus beneath
	// Traffic counts the messages of Send; nil: nobody does. It is set before the first call.
	Traffic *traffic.Counts
	name    string // prefix of the holders' names

	mu     sync.Mutex
	topics map[string]*topic
	lanes  map[transport.Destination]*lane
	taken  uint64 // source of the numbers in holders' names
}

// New decorates a bus. name is the process's name, with which the names of holders begin.
func New(beneath transport.Bus, name string) *Bus {
	return &Bus{Bus: beneath, name: name, topics: map[string]*topic{}, lanes: map[transport.Destination]*lane{}}
}

// Take reserves a slot for a request of the topic and names its holder. ok is false where
// this process does not serve the topic or has no slot to spare. Then either Send the
// request with the holder in its message, or Drop the slot; Drop it also if the outcome
// of Send is an error.
func (b *Bus) Take(name string) (holder string, ok bool) {
	b.mu.Lock()
	t := b.topics[name]
	if t == nil || t.local+1 > t.share || t.local+t.pulled+1 > t.slots {
		b.mu.Unlock()
		return "", false
	}
	t.local++
	b.taken++
	n := b.taken
	b.mu.Unlock()
	b.yield(name, 1)
	return b.name + "~" + strconv.FormatUint(n, 36), true
}

// Begin gives a request to its handler before its cause has committed (L4). The caller calls run, on
// any goroutine. Take has reserved a slot for it, and m names the holder. Error: ErrNotServed, also
// for a message that no bus would take; then Drop the slot.
func (b *Bus) Begin(m *transport.Message, cause *early.Cause) (run func(), err error) {
	b.mu.Lock()
	t := b.topics[m.To.Topic]
	b.mu.Unlock()
	if t == nil || m.Validate(b.MaxPayload()) != nil {
		return nil, ErrNotServed
	}
	d := &uncommitted{delivery: delivery{msg: *m}, cause: cause}
	d.finish = func(bool, time.Duration) { t.drop() }
	if !t.call(d) || d.run == nil {
		return nil, ErrNotServed
	}
	return d.run, nil
}

// Drop frees a slot that Take reserved for a request that was not sent.
func (b *Bus) Drop(name string) {
	b.mu.Lock()
	t := b.topics[name]
	b.mu.Unlock()
	if t != nil {
		t.drop()
	}
}

func (b *Bus) yield(name string, n int) {
	if y, ok := b.Bus.(Yielder); ok {
		y.Yield(transport.ToWork(name), n)
	}
}

// Send implements transport.Bus. The outcome of a message that was handed over is nil at
// once. It is ErrNotServed for a request whose topic this process no longer serves.
func (b *Bus) Send(ctx context.Context, msgs []transport.Message, done func(i int, err error)) error {
	var rest []transport.Message
	var places []int
	for i := range msgs {
		over, err := b.handOver(&msgs[i])
		switch {
		case !over:
			b.Traffic.Add(msgs[i].Kind, traffic.JetStream, 1)
			rest, places = append(rest, msgs[i]), append(places, i)
			continue
		case err == nil:
			b.Traffic.Add(msgs[i].Kind, traffic.Memory, 1)
		}
		if done != nil {
			done(i, err)
		}
	}
	switch {
	case len(rest) == 0:
		return nil
	case len(rest) == len(msgs):
		return b.Bus.Send(ctx, msgs, done)
	case done == nil:
		return b.Bus.Send(ctx, rest, nil)
	}
	return b.Bus.Send(ctx, rest, func(i int, err error) { done(places[i], err) })
}

// handOver gives a message to the consumer of its destination in this process. over says
// that the bus beneath must not send it.
func (b *Bus) handOver(m *transport.Message) (over bool, err error) {
	switch {
	case m.To.Kind == transport.Lane && !m.ByBus:
		b.mu.Lock()
		l := b.lanes[m.To]
		b.mu.Unlock()
		// The bus beneath refuses invalid messages; so they go there.
		return l != nil && m.Validate(b.MaxPayload()) == nil && l.offer(m, nil), nil
	case m.To.Kind == transport.Work && m.Holder != "" && m.Validate(b.MaxPayload()) == nil:
		b.mu.Lock()
		t := b.topics[m.To.Topic]
		b.mu.Unlock()
		if t == nil || !t.hand(m) {
			return true, ErrNotServed
		}
		return true, nil
	}
	return false, nil
}

// Answer gives the engine of this process a response, with the outcome of its run's last effect: one
// transaction records both (J8). false: no engine here serves the lane, or it has no room.
func (b *Bus) Answer(m *transport.Message, x *store.Completion) bool {
	b.mu.Lock()
	l := b.lanes[m.To]
	b.mu.Unlock()
	kind := m.Kind // the engine may tell the run before offer returns, and m is the run's again
	if l == nil || m.Validate(b.MaxPayload()) != nil || !l.offer(m, x) {
		return false
	}
	b.Traffic.Add(kind, traffic.Memory, 1)
	return true
}

// Oldest implements transport.Bus. Messages under way in this process count.
func (b *Bus) Oldest(ctx context.Context, d transport.Destination) (publishedAt int64, found bool, err error) {
	b.mu.Lock()
	l := b.lanes[d]
	b.mu.Unlock()
	publishedAt, found, err = b.Bus.Oldest(ctx, d)
	if err != nil || l == nil {
		return publishedAt, found, err
	}
	if at, has := l.oldest(); has && (!found || at < publishedAt) {
		return at, true, nil
	}
	return publishedAt, found, nil
}

// Consume implements transport.Bus.
func (b *Bus) Consume(
	ctx context.Context, from transport.Destination, slots int, handle func(transport.Delivery),
) error {
	switch from.Kind {
	case transport.Lane:
		return b.consumeLane(ctx, from, slots, handle)
	case transport.Work:
		return b.consumeTopic(ctx, from, slots, handle)
	}
	return b.Bus.Consume(ctx, from, slots, handle)
}

// back sends a message by the bus beneath. If that fails, the message's row sends it
// again.
func (b *Bus) back(m *transport.Message) {
	ctx, cancel := context.WithTimeout(context.Background(), sendWait)
	defer cancel()
	b.Traffic.Add(m.Kind, traffic.JetStream, 1)
	_ = b.Bus.Send(ctx, []transport.Message{*m}, nil)
}
