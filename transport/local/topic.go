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
	name          string
	calls         sync.Mutex // of handle, one at a time; none once ended
	ended         bool
	handle        func(transport.Delivery)
	slots, share  int // in all, and of them for requests of this process
	local, pulled int // taken, by where the request comes from; under the bus's mu
}

func (b *Bus) consumeTopic(ctx context.Context, from transport.Destination, slots int, handle func(transport.Delivery)) error {
	t := &topic{bus: b, name: from.Topic, handle: handle, slots: slots, share: slots - max(1, slots/4)}
	b.mu.Lock()
	b.topics[from.Topic] = t
	b.mu.Unlock()
	// What the bus beneath still has under way may take it a while: nothing more is
	// taken meanwhile.
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

// end lets the topic take nothing more. Running handlers go on.
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

// hand gives a request, for which a slot was taken, to its handler: false where the
// topic is not served any more.
func (t *topic) hand(m *transport.Message) bool {
	d := &delivery{msg: *m}
	d.finish = func(bool, time.Duration) { t.drop() } // its row was handed back by who had it
	return t.call(d)
}

// drop gives a slot back that was taken here.
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

// release counts the end of a request that came by the bus.
func (t *topic) release() {
	t.bus.mu.Lock()
	defer t.bus.mu.Unlock()
	t.pulled--
}
