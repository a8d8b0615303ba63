package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/quipu-journal/quipu/journal/store"
)

// Limits of groups.
const (
	groupWrites  = 64      // in one transaction
	groupBytes   = 4 << 20 // of their results, unless one is larger
	groupsAtOnce = 3       // transactions
	groupQueue   = 4096    // writes that wait for one
)

// errAlone asks for a transaction of the write's own.
var errAlone = errors.New("not to be committed with others")

// group joins writes of effects that are under way at the same time, whoever's
// they are, into one transaction. Nobody waits for others to come: who finds less
// than groupsAtOnce transactions under way begins one, and what comes meanwhile is
// the next. It has no goroutine: the first of the writes commits for all.
type group struct {
	commit func(context.Context, []*effectCall)

	mu      sync.Mutex
	waiting []*effectCall // in the order in which they came
	running int
	rows    map[rowKey]bool // of the transactions under way: they would have to be waited for
}

// join has the write committed with others. A write that waits is given up when
// ctx ends; one that is being committed is not (J4).
func (g *group) join(ctx context.Context, w *effectCall) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errNotSent, context.Cause(ctx))
	}
	w.lead, w.done = make(chan []*effectCall, 1), make(chan struct{})
	if !g.enter(w) {
		return errAlone
	}
	ended := ctx.Done()
	for {
		select {
		case writes := <-w.lead:
			g.run(ctx, writes)
			return w.err
		case <-w.done:
			return w.err
		case <-ended:
			if g.leave(w) {
				return fmt.Errorf("%w: %w", errNotSent, context.Cause(ctx))
			}
			ended = nil
		}
	}
}

// enter lets the write wait; false: too many do.
func (g *group) enter(w *effectCall) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) >= groupQueue {
		return false
	}
	g.waiting = append(g.waiting, w)
	g.next()
	return true
}

// leave takes a write back that waits still.
func (g *group) leave(w *effectCall) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, w)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return true
}

// next hands what waits to those who commit it; mu is held.
func (g *group) next() {
	for g.running < groupsAtOnce {
		writes := g.take()
		if len(writes) == 0 {
			return
		}
		g.running++
		for _, w := range writes {
			g.rows[w.row()] = true
		}
		writes[0].lead <- writes
	}
}

// take takes the writes of the next transaction.
func (g *group) take() (writes []*effectCall) {
	size := 0
	g.waiting = slices.DeleteFunc(g.waiting, func(w *effectCall) bool {
		n := len(w.effect.Result)
		if g.rows[w.row()] || len(writes) == groupWrites || len(writes) > 0 && size+n > groupBytes {
			return false
		}
		writes, size = append(writes, w), size+n
		return true
	})
	return writes
}

// run commits the writes, the first of which is the caller's.
func (g *group) run(ctx context.Context, writes []*effectCall) {
	for _, w := range writes {
		w.err = fmt.Errorf("postgres: %s: %w: its group did not end", w.op, store.ErrUnknown)
	}
	defer func() {
		g.mu.Lock()
		g.running--
		for _, w := range writes {
			delete(g.rows, w.row())
		}
		g.next()
		g.mu.Unlock()
		for _, w := range writes[1:] {
			close(w.done)
		}
	}()
	g.commit(context.WithoutCancel(ctx), writes)
}

// commitGroup commits the writes in one transaction, none of which fails another:
// where the database refuses what they are together, each is committed alone.
func (s *Store) commitGroup(ctx context.Context, writes []*effectCall) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CommitTimeout)
	defer cancel()
	err := settle("effects", s.with(ctx, func(c *conn) error { return s.together(ctx, c, writes) }))
	switch {
	case err == nil:
		return
	case len(writes) > 1 && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown):
		err = errAlone
	}
	for _, w := range writes {
		w.err = err
	}
}
