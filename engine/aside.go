package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/quipu-journal/quipu/journal/store"
)

// Bounds of what is carried aside.
const (
	maxAside   = 4   // transactions at a time
	maxWaiting = 512 // items that wait for one of them
)

// aside carries singly what a batch would have to wait for, on connections of its
// own: a job, a key or a row that another transaction holds, a caller's own perhaps.
// So that one stalls neither lanes nor other callers (W3).
type aside struct {
	c *Committer

	mu      sync.Mutex
	free    []*loop // patient ones that carry nothing
	waiting []work  // each of one item
	busy    sync.WaitGroup
}

func newAside(c *Committer) *aside {
	a := &aside{c: c}
	for range maxAside {
		a.free = append(a.free, &loop{Committer: c, patient: true})
	}
	return a
}

// take carries the work, each item by itself; it returns at once. What is too much
// is handed back.
func (a *aside) take(ctx context.Context, w work) {
	for _, it := range w.items {
		a.one(ctx, work{items: []*item{it}})
	}
	for _, x := range w.calls {
		a.one(ctx, work{calls: []*call{x}})
	}
}

func (a *aside) one(ctx context.Context, w work) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch n := len(a.free); {
	case n > 0:
		l := a.free[n-1]
		a.free = a.free[:n-1]
		a.busy.Go(func() { a.carry(ctx, l, w) })
	case len(a.waiting) < maxWaiting:
		a.waiting = append(a.waiting, w)
	default:
		(&loop{Committer: a.c}).giveUp(w, errCrowded)
	}
}

// carry carries the work, and what waits by then.
func (a *aside) carry(ctx context.Context, l *loop, w work) {
	for more := true; more; {
		l.carry(ctx, w)
		a.mu.Lock()
		if more = len(a.waiting) > 0; more {
			w, a.waiting = a.waiting[0], a.waiting[1:]
		} else {
			a.free = append(a.free, l)
		}
		a.mu.Unlock()
	}
}

// errCrowded is why something goes back that would have to wait.
var errCrowded = fmt.Errorf("%w: %w: more than %d items wait for other transactions", store.ErrUnavailable, store.ErrBusy, maxWaiting)

// close ends the connections, when nothing is carried any more.
func (a *aside) close() {
	a.busy.Wait()
	for _, l := range a.free {
		l.close()
	}
}
