package local

import (
	"context"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
)

// errReturned says that a response was not decided together with an outcome.
var errReturned = store.Unavailable("the outcome and the response are to be recorded one after the other")

// lane hands messages to the engine of this process, as many at a time as it has slots.
type lane struct {
	bus   *Bus
	slots int
	queue chan *delivery

	mu     sync.Mutex
	open   map[*delivery]struct{}    // under way or unfinished
	later  map[*delivery]*time.Timer // handed back; the bus sends them after a delay
	ending bool
}

func (b *Bus) consumeLane(
	ctx context.Context, from transport.Destination, slots int, handle func(transport.Delivery),
) error {
	l := &lane{
		bus: b, slots: slots, queue: make(chan *delivery, max(slots, 1)), open: map[*delivery]struct{}{},
		later: map[*delivery]*time.Timer{},
	}
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
	leave := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.lanes[from] == l {
			delete(b.lanes, from)
		}
	}
	// The bus beneath may need a while to end its deliveries. From now on it gets all
	// messages.
	defer context.AfterFunc(ctx, leave)()
	err := b.Bus.Consume(ctx, from, slots, one)
	leave()
	stop()
	<-served
	l.end()
	return err
}

// offer takes a message if there is room, and the outcome that a response has with it, if any.
func (l *lane) offer(m *transport.Message, outcome *store.Completion) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending || len(l.open) >= l.slots {
		return false
	}
	d := &delivery{msg: *m, outcome: outcome}
	d.finish = func(again bool, delay time.Duration) {
		l.mu.Lock()
		delete(l.open, d)
		l.mu.Unlock()
		switch {
		case !again:
		case outcome != nil:
			outcome.Told(store.EffectRow{}, errReturned)
		default:
			l.back(d, delay)
		}
	}
	l.open[d] = struct{}{}
	l.queue <- d // the queue has room for all open deliveries
	return true
}

// back sends a returned message by the bus after a delay, but at once when the lane has
// ended, since the bus may be about to close.
func (l *lane) back(d *delivery, delay time.Duration) {
	l.mu.Lock()
	wait := delay > transport.MinNakDelay && !l.ending
	if wait {
		l.later[d] = time.AfterFunc(delay, func() {
			l.mu.Lock()
			delete(l.later, d)
			l.mu.Unlock()
			l.bus.back(&d.msg)
		})
	}
	l.mu.Unlock()
	if !wait {
		l.bus.back(&d.msg)
	}
}

// end sends by the bus all messages that are still queued or delayed.
func (l *lane) end() {
	l.mu.Lock()
	l.ending = true
	later := l.later
	l.later = map[*delivery]*time.Timer{}
	l.mu.Unlock()
	for d, timer := range later {
		if timer.Stop() {
			l.bus.back(&d.msg)
		}
	}
	for {
		select {
		case d := <-l.queue:
			_ = d.Nak(transport.MinNakDelay)
		default:
			return
		}
	}
}

// oldest is the earliest PublishedAt of the open messages.
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
