package local

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

// topic counts the slots of one topic that this process serves. What comes by the bus
// and finds them taken goes back at once, to who has one free.
type topic struct {
	bus           *Bus
	handle        func(transport.Delivery)
	slots, share  int // in all, and of them for requests of this process
	local, pulled int // taken, by where the request comes from; under the bus's mu
}

func (b *Bus) consumeTopic(ctx context.Context, from transport.Destination, slots int, handle func(transport.Delivery)) error {
	t := &topic{bus: b, handle: handle, slots: slots, share: slots - max(1, slots/4)}
	b.mu.Lock()
	b.topics[from.Topic] = t
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.topics[from.Topic] == t {
			delete(b.topics, from.Topic)
		}
	}()
	return b.Bus.Consume(ctx, from, slots, func(d transport.Delivery) {
		b.mu.Lock()
		full := t.local+t.pulled >= t.slots
		if !full {
			t.pulled++
		}
		b.mu.Unlock()
		if full {
			_ = d.Nak(transport.MinNakDelay)
			return
		}
		handle(&pulled{Delivery: d, topic: t})
	})
}

// hand gives a request, for which a slot was taken, to its handler.
func (t *topic) hand(m *transport.Message) bool {
	t.bus.mu.Lock()
	served := t.bus.topics[m.To.Topic] == t
	t.bus.mu.Unlock()
	if !served {
		return false
	}
	d := &delivery{msg: *m}
	d.finish = func(bool, time.Duration) { t.bus.Drop(m.To.Topic) } // its row was handed back by who had it
	t.handle(d)
	return true
}

// release counts the end of a request that came by the bus.
func (t *topic) release() {
	t.bus.mu.Lock()
	defer t.bus.mu.Unlock()
	t.pulled--
}
