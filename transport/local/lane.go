package local

import (
	"context"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

// lane hands messages to the engine of this process, as many at a time as it has
// slots for.
type lane struct {
	bus   *Bus
	slots int
	queue chan *delivery

	mu     sync.Mutex
	open   map[*delivery]struct{} // on their way, or unfinished
	ending bool
}

func (b *Bus) consumeLane(ctx context.Context, from transport.Destination, slots int, handle func(transport.Delivery)) error {
	l := &lane{bus: b, slots: slots, queue: make(chan *delivery, max(slots, 1)), open: map[*delivery]struct{}{}}
	b.mu.Lock()
	b.lanes[from] = l
	b.mu.Unlock()
	turn := make(chan struct{}, 1) // handle is called by one goroutine at a time
	one := func(d transport.Delivery) {
		turn <- struct{}{}
		defer func() { <-turn }()
		handle(d)
	}
	local, stop := context.WithCancel(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			select {
			case d := <-l.queue:
				one(d)
			case <-local.Done():
				return
			}
		}
	}()
	err := b.Bus.Consume(ctx, from, slots, one)
	b.mu.Lock()
	if b.lanes[from] == l {
		delete(b.lanes, from)
	}
	b.mu.Unlock()
	stop()
	<-served
	l.end()
	return err
}

// offer takes a message, where there is room.
func (l *lane) offer(m *transport.Message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending || len(l.open) >= l.slots {
		return false
	}
	d := &delivery{msg: *m}
	d.finish = func(again bool, delay time.Duration) {
		l.mu.Lock()
		delete(l.open, d)
		l.mu.Unlock()
		if again {
			l.bus.back(&d.msg, delay)
		}
	}
	l.open[d] = struct{}{}
	l.queue <- d // it has room for all that may be open
	return true
}

// end sends by the bus what nobody takes any more.
func (l *lane) end() {
	l.mu.Lock()
	l.ending = true
	l.mu.Unlock()
	for {
		select {
		case d := <-l.queue:
			_ = d.Nak(transport.MinNakDelay)
		default:
			return
		}
	}
}

// oldest is the earliest publication of what is on its way or unfinished.
func (l *lane) oldest() (publishedAt int64, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := range l.open {
		if at := d.msg.Header.PublishedAt; !found || at < publishedAt {
			publishedAt, found = at, true
		}
	}
	return publishedAt, found
}
