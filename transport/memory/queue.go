package memory

import (
	"container/heap"
	"container/list"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

// entry is one message in a queue, undelivered or unfinished.
type entry struct {
	msg     transport.Message
	err     error
	number  uint64    // order of arrival
	visible time.Time // not delivered before this time
	count   int       // deliveries so far
	ends    int       // Acks, Naks and Terms so far, for the dice
	at      int       // index in the heap, -1 when gone
	place   *list.Element
}

// queue is one destination's work queue: a heap by the next time of delivery, a list by
// arrival for Oldest, and the channels that wake consumers.
type queue struct {
	heap    entries
	order   *list.List
	waiters map[chan struct{}]struct{}
}

func newQueue() *queue {
	return &queue{order: list.New(), waiters: make(map[chan struct{}]struct{})}
}

func (q *queue) add(e *entry) {
	heap.Push(&q.heap, e)
	e.place = q.order.PushBack(e)
	q.wake()
}

// due is the next entry to deliver at now. If it is nil, the time says when to look
// again; zero for an empty queue.
func (q *queue) due(now time.Time) (*entry, time.Time) {
	if len(q.heap) == 0 {
		return nil, time.Time{}
	}
	first := q.heap[0]
	if first.visible.After(now) {
		return nil, first.visible
	}
	return first, time.Time{}
}

func (q *queue) postpone(e *entry, until time.Time) {
	if e.at < 0 {
		return
	}
	e.visible = until
	heap.Fix(&q.heap, e.at)
	q.wake()
}

func (q *queue) remove(e *entry) {
	if e.at < 0 {
		return
	}
	heap.Remove(&q.heap, e.at)
	q.order.Remove(e.place)
}

func (q *queue) clear() {
	for _, e := range q.heap {
		e.at = -1
	}
	q.heap = nil
	q.order.Init()
}

func (q *queue) wake() {
	for waiter := range q.waiters {
		select {
		case waiter <- struct{}{}:
		default:
		}
	}
}

// entries is a heap.Interface.
type entries []*entry

func (h entries) Len() int { return len(h) }

func (h entries) Less(i, j int) bool {
	if c := h[i].visible.Compare(h[j].visible); c != 0 {
		return c < 0
	}
	return h[i].number < h[j].number
}

func (h entries) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *entries) Push(x any) {
	e := x.(*entry)
	e.at = len(*h)
	*h = append(*h, e)
}

func (h *entries) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.at = -1
	return e
}
