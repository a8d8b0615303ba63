package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

// keepFor bounds how long an unfinished delivery is kept in progress. It is longer than a batch
// is tried.
const keepFor = time.Minute

// keeping has the deliveries that the engine has not finished. While they wait for their batch,
// or for the database, it keeps them from being delivered a second time.
type keeping struct {
	mu   sync.Mutex
	held map[*inHand]struct{}
	some chan struct{} // told when something is held: the ticker stands still until then
	n    uint64        // numbers them
}

func newKeeping() *keeping {
	return &keeping{held: map[*inHand]struct{}{}, some: make(chan struct{}, 1)}
}

// inHand is one unfinished delivery.
type inHand struct {
	transport.Delivery
	by    *keeping
	since time.Time
	n     uint64
}

func (k *keeping) add(d transport.Delivery) *inHand {
	x := &inHand{Delivery: d, by: k, since: time.Now()}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.n++
	x.n = k.n
	if k.held[x] = struct{}{}; len(k.held) == 1 {
		select {
		case k.some <- struct{}{}:
		default:
		}
	}
	return x
}

func (k *keeping) remove(d *inHand) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, d)
}

// run reports older deliveries as in progress, in every interval, until ctx ends.
func (k *keeping) run(ctx context.Context, every time.Duration) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.some:
		}
		for some := true; some; {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(every):
			}
			var late []*inHand
			late, some = k.late(time.Now(), every)
			for _, d := range late {
				_ = d.InProgress() // only a hint: without it the message comes again
			}
		}
	}
}

// late lists deliveries held for at least after, the oldest first; some: any is held.
func (k *keeping) late(now time.Time, after time.Duration) (late []*inHand, some bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for d := range k.held {
		switch age := now.Sub(d.since); {
		case age > keepFor:
			delete(k.held, d)
		case age >= after:
			late = append(late, d)
		}
	}
	slices.SortFunc(late, func(a, b *inHand) int { return cmp.Compare(a.n, b.n) })
	return late, len(k.held) > 0
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
