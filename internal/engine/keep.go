package engine

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
)

// keepFor bounds how long an unfinished delivery is kept in progress. It is longer than a batch
// is tried.
const keepFor = time.Minute

// keeping has the deliveries that the engine has not finished. While they wait for their batch,
// or for the database, it keeps them from being delivered a second time.
type keeping struct {
	every time.Duration // between two reports

	mu    sync.Mutex
	held  map[*inHand]struct{}
	timer *time.Timer // nil before the first delivery; it runs while something is held
	ended bool        // the engine has ended: others may have what it left
	n     uint64      // numbers them
}

func newKeeping(every time.Duration) *keeping {
	return &keeping{every: every, held: map[*inHand]struct{}{}}
}

// inHand is one unfinished delivery.
type inHand struct {
	transport.Delivery
	by    *keeping
	since time.Time
	n     uint64
}

// Completion is what the delivery brings, if it brings one.
func (d *inHand) Completion() *store.Completion { return completionOf(d.Delivery) }

func (k *keeping) add(d transport.Delivery) *inHand {
	x := &inHand{Delivery: d, by: k, since: time.Now()}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.n++
	x.n = k.n
	k.held[x] = struct{}{}
	switch {
	case len(k.held) > 1, k.ended:
	case k.timer == nil:
		k.timer = time.AfterFunc(k.every, k.tick)
	default:
		k.timer.Reset(k.every)
	}
	return x
}

func (k *keeping) remove(d *inHand) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if delete(k.held, d); len(k.held) == 0 && k.timer != nil {
		k.timer.Stop()
	}
}

// end ends the reports, since nobody finishes what is still held.
func (k *keeping) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended = true; k.timer != nil {
		k.timer.Stop()
	}
}

// tick reports older deliveries as in progress.
func (k *keeping) tick() {
	for _, d := range k.late(time.Now()) {
		_ = d.InProgress() // only a hint: without it the message comes again
	}
}

// late lists the deliveries that have been held for an interval, the oldest first, and
// begins the next one while any is held.
func (k *keeping) late(now time.Time) (late []*inHand) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for d := range k.held {
		switch age := now.Sub(d.since); {
		case age > keepFor:
			delete(k.held, d)
		case age >= k.every:
			late = append(late, d)
		}
	}
	slices.SortFunc(late, func(a, b *inHand) int { return cmp.Compare(a.n, b.n) })
	if len(k.held) > 0 && !k.ended {
		k.timer.Reset(k.every)
	}
	return late
}

// Ack implements transport.Delivery.
func (d *inHand) Ack() error {
	d.by.remove(d)
	return d.Delivery.Ack()
}

// Nak implements transport.Delivery.
func (d *inHand) Nak(delay time.Duration) error {
	d.by.remove(d)
	return d.Delivery.Nak(delay)
}

// Term implements transport.Delivery.
func (d *inHand) Term(reason string) error {
	d.by.remove(d)
	return d.Delivery.Term(reason)
}
