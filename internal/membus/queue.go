package membus

import (
	"container/heap"
	"container/list"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

// entry is one message in a queue, undelivered or unfinished.
type entry struct {
	msg     transport.Message
	err     error
	number  uint64    // order of arrival
	came    time.Time // when it arrived
	visible time.Time // not delivered before this time
	count   int       // deliveries so far
	ends    int       // Acks, Naks and Terms so far, for the dice
	at      int       // index in the heap, -1 when gone
	place   *list.Element
}

// queue is one destination's work queue: a heap by the next time of delivery, a list by
// arrival for Oldest, and what wakes consumers: channels, and a timer for what is delivered
// later. It is under the bus's mu.
type queue struct {
	heap    entries
	order   *list.List
	waiters map[chan struct{}]struct{}
	timer   *time.Timer
}

func newQueue(mu *sync.Mutex) *queue {
	q := &queue{order: list.New(), waiters: make(map[chan struct{}]struct{})}
	q.timer = time.AfterFunc(time.Hour, func() {
		mu.Lock()
		defer mu.Unlock()
		q.wake()
	})
	q.timer.Stop()
	return q
}

func (q *queue) add(e *entry) {
	heap.Push(&q.heap, e)
	e.place = q.order.PushBack(e)
	q.settle()
}

// settle wakes the consumers if a delivery is due, and sets the timer for the next one. Call
// it after every change.
func (q *queue) settle() {
	if len(q.heap) == 0 {
		q.timer.Stop()
		return
	}
	if wait := time.Until(q.heap[0].visible); wait > 0 {
		q.timer.Reset(wait)
		return
	}
	q.timer.Stop()
	q.wake()
}

// due is the next entry to deliver at now, nil for none.
func (q *queue) due(now time.Time) *entry {
	if len(q.heap) == 0 || q.heap[0].visible.After(now) {
		return nil
	}
	return q.heap[0]
}

func (q *queue) postpone(e *entry, until time.Time) {
	if e.at < 0 {
		return
	}
	e.visible = until
	heap.Fix(&q.heap, e.at)
	q.settle()
}

func (q *queue) remove(e *entry) {
	if e.at < 0 {
		return
	}
	heap.Remove(&q.heap, e.at)
	q.order.Remove(e.place)
	q.settle()
}

func (q *queue) clear() {
	for _, e := range q.heap {
		e.at = -1
	}
	q.heap = nil
	q.order.Init()
	q.settle()
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
