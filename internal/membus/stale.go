package membus

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

// RemoveStale implements transport.Bus. A call looks at all requests.
func (b *Bus) RemoveStale(
	ctx context.Context, waited time.Duration, stale func(context.Context, []transport.Message) ([]bool, error),
) (int, error) {
	found, msgs := b.waiting(time.Now().Add(-waited))
	if len(found) == 0 {
		return 0, ctx.Err()
	}
	gone, err := stale(ctx, msgs)
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	removed := 0
	for i, e := range found {
		if gone[i] && e.at >= 0 {
			b.queue(e.msg.To).remove(e)
			removed++
		}
	}
	return removed, nil
}

// waiting lists the requests that came before a time, by their arrival.
func (b *Bus) waiting(before time.Time) (found []*entry, msgs []transport.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for d, q := range b.queues {
		if d.Kind != transport.Work {
			continue
		}
		for _, e := range q.heap {
			if e.err == nil && !e.came.After(before) {
				found = append(found, e)
			}
		}
	}
	slices.SortFunc(found, func(a, b *entry) int { return cmp.Compare(a.number, b.number) })
	for _, e := range found {
		msgs = append(msgs, e.msg)
	}
	return found, msgs
}
