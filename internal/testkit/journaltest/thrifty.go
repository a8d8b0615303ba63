package journaltest

import (
	"context"
	"sync"

	"github.com/quipu-journal/quipu/internal/store"
)

// maxIdle bounds the idle committers of each kind: a server has only so many connections.
const maxIdle = 4

// Thrifty is a store that reuses closed committers. The operations of Driven open a committer
// each, and connecting to a database takes longer than the operation. Close closes the idle
// committers and the store.
type Thrifty struct {
	store.Store
	// Again, if set, is called with a committer before it is reused.
	Again func(store.Committer)

	mu   sync.Mutex
	idle map[bool][]store.Committer // by whether they are patient
}

// Committer returns an idle committer or opens one.
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

// Close closes the idle committers and the store.
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

// Close rolls back and makes the committer idle.
func (c *thrifty) Close() {
	if c.closed {
		return
	}
	c.closed = true
	_ = c.Rollback(context.Background()) // after an error the committer has closed its connection
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
