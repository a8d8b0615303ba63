package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// maxWaiting bounds what waits to be carried aside: an item, or the signals of one
// mailbox, is one.
const maxWaiting = 512

// aside carries singly what a batch would have to wait for, on connections of its
// own: a job, a key, a mailbox or a row that another transaction holds, perhaps a
// caller's own. So that one stalls neither lanes nor other callers (W3).
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

// take carries the work, each item by itself, the signals of one mailbox together; it
// returns at once. What is too much is handed back.
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

// one carries the work, or has it wait; there may be too much.
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

// carry carries the work, and what waits by then, on one of the loops.
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

// errCrowded is why something goes back that would have to wait.
var errCrowded = fmt.Errorf("%w: %w: more than %d items wait for other transactions", store.ErrUnavailable, store.ErrBusy, maxWaiting)

// close ends the connections, when nothing is carried any more.
func (a *aside) close() {
	a.busy.Wait()
	for _, l := range a.loops {
		l.close()
	}
}
