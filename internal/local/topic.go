package local

import (
	"context"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

// topic counts the slots of one topic that this process serves. A request from the bus
// that finds no free slot goes back at once, for a process that has one.
type topic struct {
	bus           *Bus
	name          string
	calls         sync.Mutex // serialises handle
	ended         bool
	handle        func(transport.Delivery)
	slots, share  int // slots: all; share: those for requests of this process
	local, pulled int // slots in use, by origin of the request; under the bus's mu
}

func (b *Bus) consumeTopic(
	ctx context.Context, from transport.Destination, slots int, handle func(transport.Delivery),
) error {
	t := &topic{bus: b, name: from.Topic, handle: handle, slots: slots, share: slots - max(1, slots/4)}
	b.mu.Lock()
	b.topics[from.Topic] = t
	b.mu.Unlock()
	// The bus beneath may need a while to end its deliveries. From now on the topic takes
	// nothing more.
	defer context.AfterFunc(ctx, t.end)()
	defer t.end()
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
		if p := (&pulled{Delivery: d, topic: t}); !t.call(p) {
			_ = p.Nak(transport.MinNakDelay)
		}
	})
}

// end makes the topic take nothing more. Running handlers go on.
func (t *topic) end() {
	t.bus.mu.Lock()
	if t.bus.topics[t.name] == t {
		delete(t.bus.topics, t.name)
	}
	t.bus.mu.Unlock()
	t.calls.Lock()
	defer t.calls.Unlock()
	t.ended = true
}

// hand gives a request with a reserved slot to its handler; false if the topic is no
// longer served.
func (t *topic) hand(m *transport.Message) bool {
	d := &delivery{msg: *m}
	d.finish = func(bool, time.Duration) { t.drop() } // the holder hands its row back
	return t.call(d)
}

// drop frees a slot that Take reserved.
func (t *topic) drop() {
	t.bus.mu.Lock()
	t.local = max(t.local-1, 0)
	t.bus.mu.Unlock()
	t.bus.yield(t.name, -1)
}

func (t *topic) call(d transport.Delivery) bool {
	t.calls.Lock()
	defer t.calls.Unlock()
	if t.ended {
		return false
	}
	t.handle(d)
	return true
}

func (t *topic) release() {
	t.bus.mu.Lock()
	defer t.bus.mu.Unlock()
	t.pulled--
}
