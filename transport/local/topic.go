package local

import (
	"context"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

// topic counts the slots of one topic that this process serves. What comes by the bus
// and finds them taken goes back at once, to who has one free.
type topic struct {
	bus           *Bus
	calls         sync.Mutex // of handle, one at a time; none once ended
	ended         bool
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
		if b.topics[from.Topic] == t {
			delete(b.topics, from.Topic)
		}
		b.mu.Unlock()
		t.calls.Lock()
		defer t.calls.Unlock()
		t.ended = true
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
		t.call(&pulled{Delivery: d, topic: t})
	})
}

// hand gives a request, for which a slot was taken, to its handler: false where the
// topic is not served any more.
func (t *topic) hand(m *transport.Message) bool {
	d := &delivery{msg: *m}
	d.finish = func(bool, time.Duration) { t.bus.Drop(m.To.Topic) } // its row was handed back by who had it
	return t.call(d)
}

func (t *topic) call(d transport.Delivery) bool {
	t.calls.Lock()
	defer t.calls.Unlock()
	if !t.ended {
		t.handle(d)
	}
	return !t.ended
}

// release counts the end of a request that came by the bus.
func (t *topic) release() {
	t.bus.mu.Lock()
	defer t.bus.mu.Unlock()
	t.pulled--
}
