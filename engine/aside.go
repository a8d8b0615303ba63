package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// maxWaiting bounds the waiting work of an aside. One item, or the signals of one mailbox,
// counts as one.
const maxWaiting = 512

// aside carries work that a batch would have to wait for: a job, key, mailbox or row that
// another transaction holds, perhaps a caller's. It carries each singly, on connections of its
// own, so that it delays neither lanes nor other callers (W3).
type aside struct {
	c *Committer

	mu      sync.Mutex
	loops   []*loop // patient ones
	carries []bool
	waiting []work // each of one item, or of one mailbox
	busy    sync.WaitGroup
}

func newAside(c *Committer) *aside {
	a := &aside{c: c}
	for range c.cfg.Aside {
		a.loops, a.carries = append(a.loops, &loop{Committer: c, patient: true}), append(a.carries, false)
	}
	return a
}

// take accepts the work and returns at once. Each item is carried by itself, the signals of one
// mailbox together. Work beyond maxWaiting is handed back.
func (a *aside) take(ctx context.Context, w work) {
	boxes := map[journal.JobID]*work{}
	var order []journal.JobID
	var crowded work
	one := func(w work) {
		if !a.one(ctx, w) {
			crowded.items, crowded.calls = append(crowded.items, w.items...), append(crowded.calls, w.calls...)
		}
	}
	box := func(id journal.JobID) *work {
		if boxes[id] == nil {
			boxes[id], order = &work{}, append(order, id)
		}
		return boxes[id]
	}
	for _, it := range w.items {
		if it.msg.Kind == journal.MessageSignal {
			of := box(it.msg.Job)
			of.items = append(of.items, it)
			continue
		}
		one(work{items: []*item{it}})
	}
	for _, x := range w.calls {
		if x.box != nil {
			of := box(*x.box)
			of.calls = append(of.calls, x)
			continue
		}
		one(work{calls: []*call{x}})
	}
	for _, id := range order {
		one(*boxes[id])
	}
	if !crowded.empty() {
		(&loop{Committer: a.c}).giveUp(crowded, errCrowded)
	}
}

// one starts or queues the work; false: the queue is full.
func (a *aside) one(ctx context.Context, w work) (taken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.carries, false); i >= 0 {
		a.carries[i] = true
		a.busy.Go(func() { a.carry(ctx, i, w) })
		return true
	}
	if len(a.waiting) >= maxWaiting {
		return false
	}
	a.waiting = append(a.waiting, w)
	return true
}

// carry carries the work, then what is queued by then, on one of the loops.
func (a *aside) carry(ctx context.Context, i int, w work) {
	for more := true; more; {
		a.loops[i].carry(ctx, w)
		a.mu.Lock()
		if more = len(a.waiting) > 0; more {
			w, a.waiting = a.waiting[0], a.waiting[1:]
		} else {
			a.carries[i] = false
		}
		a.mu.Unlock()
	}
}

// errCrowded says why work is handed back that would have to wait.
var errCrowded = fmt.Errorf("%w: %w: more than %d items wait for other transactions", store.ErrUnavailable, store.ErrBusy, maxWaiting)

// close waits until nothing is carried any more, and closes the connections.
func (a *aside) close() {
	a.busy.Wait()
	for _, l := range a.loops {
		l.close()
	}
}
