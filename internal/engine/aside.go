package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// maxWaiting bounds the units that wait for patient loops, and maxSorting those that are tried
// singly before.
const (
	maxWaiting = 512
	maxSorting = 2 * maxCalls
)

// aside carries items by themselves, on connections of its own, which a batch would have to wait for:
// a job, key, mailbox or row that another transaction holds, perhaps a caller's. So that delays
// neither lanes nor other callers (W3). There are two of them. The sorter carries what shared a
// batch with such work, and waits as briefly as a batch; what it finds to be held goes to the
// patient one.
type aside struct {
	c    *Committer
	room int // units that may wait

	mu      sync.Mutex
	loops   []*loop
	carries []*unit // of each loop; nil: it is free
	waiting []*unit
	ended   bool
	size    atomic.Int64 // of what is carried or queued
	busy    sync.WaitGroup
}

// unit is one item, or all signals of one mailbox or starts of one key. of names what it waits
// for; units with one such name are carried one after another, so that what one transaction holds
// takes one loop.
type unit struct {
	items []item
	of    string
}

func newAside(c *Committer, loops int, p policy) *aside {
	a := &aside{c: c, room: maxSorting, carries: make([]*unit, loops)}
	for range loops {
		a.loops = append(a.loops, &loop{Committer: c, policy: p})
	}
	if p.waits() {
		a.room = maxWaiting
	}
	return a
}

// units cuts items into what is carried by itself.
func units(items []item) []*unit {
	var all []*unit
	shared := map[string]*unit{}
	for _, it := range items {
		name, together := it.unit()
		u := shared[name]
		if u == nil || !together {
			u = &unit{of: name}
			all = append(all, u)
		}
		if together {
			shared[name] = u
		}
		u.items = append(u.items, it)
	}
	return all
}

func ofBox(box journal.JobID) string { return "mailbox " + box.String() }
func ofKey(key string) string        { return "key " + key }

// take accepts the items and returns at once. What there is no room for is handed back.
func (a *aside) take(ctx context.Context, items []item) {
	var crowded []item
	var why error
	for _, u := range units(items) {
		if err := a.one(ctx, u); err != nil {
			crowded, why = append(crowded, u.items...), err
		}
	}
	(&loop{Committer: a.c}).giveUp(crowded, why)
}

// one starts or queues a unit.
func (a *aside) one(ctx context.Context, u *unit) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	free := slices.Index(a.carries, nil)
	switch {
	case free >= 0 && !a.underWay(u):
		a.size.Add(1)
		a.carries[free] = u
		a.busy.Go(func() { a.carry(ctx, free, u) })
	case a.ended:
		return errEnded
	case len(a.waiting) >= a.room:
		return a.crowded()
	default:
		a.size.Add(1)
		a.waiting = append(a.waiting, u)
	}
	return nil
}

// has reports whether something that waits for the same is carried or queued.
func (a *aside) has(of string) bool {
	if of == "" || a.size.Load() == 0 {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	same := func(u *unit) bool { return u != nil && u.of == of }
	return slices.ContainsFunc(a.carries, same) || slices.ContainsFunc(a.waiting, same)
}

// underWay reports whether a unit that waits for the same is carried.
func (a *aside) underWay(u *unit) bool {
	return u.of != "" && slices.ContainsFunc(a.carries, func(x *unit) bool { return x != nil && x.of == u.of })
}

// carry carries the unit, then what is queued by then, on one of the loops.
func (a *aside) carry(ctx context.Context, i int, u *unit) {
	for u != nil {
		a.loops[i].carry(ctx, u.items)
		u = a.next(i)
	}
}

// next is what a loop carries that has become free; nil: nothing.
func (a *aside) next(i int) (u *unit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.carries[i] = nil
	a.size.Add(-1)
	if n := slices.IndexFunc(a.waiting, func(u *unit) bool { return !a.underWay(u) }); n >= 0 {
		u = a.waiting[n]
		a.waiting = slices.Delete(a.waiting, n, n+1)
		a.carries[i] = u
	}
	return u
}

// crowded says why work is handed back that would have to wait.
func (a *aside) crowded() error {
	return fmt.Errorf("%w: %w: %d items wait for other transactions, the limit: try again", store.ErrUnavailable, store.ErrBusy, a.room)
}

// close waits until nothing is carried any more, and closes the connections.
func (a *aside) close() {
	a.busy.Wait()
	for _, l := range a.loops {
		l.close()
	}
}

// refuse hands back what is queued, and what comes from now on and would have to be.
func (a *aside) refuse() {
	a.mu.Lock()
	waiting := a.waiting
	a.waiting, a.ended = nil, true
	a.size.Add(-int64(len(waiting)))
	a.mu.Unlock()
	for _, u := range waiting {
		(&loop{Committer: a.c}).giveUp(u.items, errEnded)
	}
}
