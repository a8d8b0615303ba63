package journaltest

import (
	"context"
	"sync"

	"github.com/quipu-journal/quipu/journal/store"
)

// maxIdle are kept of each kind: a race has many, and a server so many connections.
const maxIdle = 4

// Thrifty is a store whose committers are used again when they are closed: a test
// drives a store by operations that have a committer each (Driven), and a connection
// to a database takes longer than all that is done with it. Close closes them, and the
// store.
type Thrifty struct {
	store.Store
	// Again, if any, is called with a committer before it is used again.
	Again func(store.Committer)

	mu   sync.Mutex
	idle map[bool][]store.Committer // by whether they wait
}

// Committer gives one that is idle, or opens one.
func (t *Thrifty) Committer(ctx context.Context, patient bool) (store.Committer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := len(t.idle[patient]) - 1; last >= 0 {
		c := t.idle[patient][last]
		t.idle[patient] = t.idle[patient][:last]
		if t.Again != nil {
			t.Again(c)
		}
		return &thrifty{Committer: c, to: t, patient: patient}, nil
	}
	c, err := t.Store.Committer(ctx, patient)
	if err != nil {
		return nil, err
	}
	return &thrifty{Committer: c, to: t, patient: patient}, nil
}

// Close closes what is idle, and the store.
func (t *Thrifty) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, idle := range t.idle {
		for _, c := range idle {
			c.Close()
		}
	}
	t.idle = nil
	t.Store.Close()
}

type thrifty struct {
	store.Committer
	to      *Thrifty
	patient bool
	closed  bool
}

// Close ends what is open, and makes the committer idle.
func (c *thrifty) Close() {
	if c.closed {
		return
	}
	c.closed = true
	_ = c.Rollback(context.Background()) // or the committer gives its connection up
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	if len(c.to.idle[c.patient]) == maxIdle {
		c.Committer.Close()
		return
	}
	if c.to.idle == nil {
		c.to.idle = map[bool][]store.Committer{}
	}
	c.to.idle[c.patient] = append(c.to.idle[c.patient], c.Committer)
}
