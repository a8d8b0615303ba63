package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
)

// All runs the bodies as branches of the durable function that ctx belongs to, and
// returns when all have ended. If some have suspended, the branch around them suspends
// too and All does not return. Outside a job the branches are goroutines (E14).
func All(ctx context.Context, bodies []func(context.Context)) error {
	c := &call{what: "All"}
	var err error
	if c.f, err = functionOf(ctx, c); err != nil {
		return err
	} else if c.f == nil {
		plainAll(ctx, bodies)
		return nil
	}
	defer c.End()
	k, err := c.fork(ctx, len(bodies))
	if err != nil {
		return err
	}
	if r := c.branch.w.recordedAt(c); r != nil {
		return c.judge(&effects.NondeterminismError{Position: c.position, Recorded: r.String(), Asked: c.String()})
	}
	k.run(c, func(i int) context.Context { return ctx }, bodies, nil)
	for _, x := range k.branches {
		if x.status == isSuspended {
			return c.branch.halt(c)
		}
		c.branch.last = max(c.branch.last, x.last)
	}
	return nil
}

// First runs the bodies as branches, and records and returns which ended first. If
// several have ended, it takes the one whose last wait was over first, then the first in
// order. The contexts of the others end with ErrLost, and they stop at their next call.
// If all have suspended, First does not return. Outside a job the branches are goroutines
// (E14).
func First(ctx context.Context, bodies []func(context.Context)) (int, error) {
	choice, err := effect.OwnCall("", "first", "", effects.Pure)
	if err != nil {
		return 0, err
	}
	c := &call{effect: choice, forks: true}
	noBranches := fmt.Errorf("First: %w: it has no branches", effects.ErrUsage)
	switch c.f, err = functionOf(ctx, c); {
	case err != nil:
		return 0, err
	case c.f == nil && len(bodies) == 0:
		return 0, noBranches
	case c.f == nil:
		return plainFirst(ctx, bodies), nil
	}
	defer c.End()
	k, err := c.fork(ctx, len(bodies))
	switch {
	case err != nil:
		return 0, err
	case len(bodies) == 0:
		return 0, c.judge(noBranches)
	}
	k.first = true
	if err := c.compareEffect(); err != nil {
		return 0, err
	}
	return c.race(ctx, k, bodies)
}

// race runs the branches of a First, or only the recorded winner.
func (c *call) race(ctx context.Context, k *fork, bodies []func(context.Context)) (int, error) {
	contexts, cancels := make([]context.Context, len(bodies)), make([]context.CancelCauseFunc, len(bodies))
	for i := range bodies {
		contexts[i], cancels[i] = context.WithCancelCause(ctx)
	}
	winner := -1
	defer func() {
		for i, cancel := range cancels {
			if i == winner {
				cancel(nil)
			} else {
				cancel(ErrLost)
			}
		}
	}()
	contextOf := func(i int) context.Context { return contexts[i] }
	if row := c.branch.w.recordedWinner(c); row != nil {
		var err error
		if winner, err = c.winner(k, row); err != nil {
			return 0, err
		}
		k.decided = true
		k.lose(winner)
		only := &winner
		if c.branch.w.undoing {
			only = nil // the others may have compensations
		}
		k.run(c, contextOf, bodies, only)
	} else {
		k.run(c, contextOf, bodies, nil)
		if winner = k.fastest(); winner < 0 {
			return 0, c.branch.halt(c)
		}
		k.lose(winner)
		// The others are told only after this: calls that are under way may finish until
		// then.
		if _, err := c.carry(ctx, winner); err != nil {
			return 0, err
		}
	}
	if k.branches[winner].status != isEnded {
		return 0, c.branch.halt(c)
	}
	c.branch.last = max(c.branch.last, k.branches[winner].last)
	return winner, nil
}

// fork begins an All or a First with n branches.
func (c *call) fork(ctx context.Context, n int) (*fork, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	b := c.branch
	w := b.w
	w.mu.Lock()
	w.forked += n
	many := w.forked > effect.MaxCalls
	w.mu.Unlock()
	if many {
		return nil, c.judge(fmt.Errorf("%s: %w: more than %d branches in one run: use workers.Child for a part of them", c, effects.ErrUsage, effect.MaxCalls))
	}
	k := &fork{by: b, branches: make([]*branch, n)}
	for i := range k.branches {
		k.branches[i] = w.branch(k, c.position+"."+strconv.Itoa(i))
	}
	return k, nil
}

// run runs the branches, or only one, and waits for them. A panic of a branch becomes a
// panic of the branch around it.
func (k *fork) run(c *call, contextOf func(int) context.Context, bodies []func(context.Context), only *int) {
	run := make([]*branch, 0, len(bodies))
	for i, x := range k.branches {
		if only == nil || *only == i {
			x.start(contextOf(i), bodies[i])
			run = append(run, x)
		}
	}
	if len(run) > 0 {
		k.by.wait(k, run)
	}
	for _, x := range run {
		if x.failed() {
			k.lose(-1)
			panic(x.panicked)
		}
	}
	k.by.w.mu.Lock()
	stop := k.by.w.given || k.by.lostLocked()
	k.by.w.mu.Unlock()
	if stop {
		_ = k.by.halt(c)
	}
}

// recordedAt is the record at the position of the call, nil for none.
func (w *walk) recordedAt(c *call) *record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.history.record(c.position)
}

// recordedWinner is what is recorded of who won, nil for nothing. After compensations a resumed job has it as
// not done, and decides anew (3.5).
func (w *walk) recordedWinner(c *call) *store.EffectRow {
	if r := w.recordedAt(c); r != nil {
		if last := &r.effects[len(r.effects)-1]; last.State != store.EffectNotDone {
			return last
		}
	}
	return nil
}

// winner is the recorded winner.
func (c *call) winner(k *fork, row *store.EffectRow) (i int, err error) {
	if err := json.Unmarshal(row.Result, &i); err != nil || i < 0 || i >= len(k.branches) {
		return 0, c.judge(&effects.NondeterminismError{
			Position: c.position, Recorded: fmt.Sprintf("First, won by its branch %s", row.Result),
			Asked: fmt.Sprintf("First with branches 0 to %d", len(k.branches)-1),
		})
	}
	return i, nil
}

// fastest is the index of the branch that ended first, -1 for none.
func (k *fork) fastest() int {
	k.by.w.mu.Lock()
	defer k.by.w.mu.Unlock()
	winner := -1
	for i, x := range k.branches {
		if x.status == isEnded && (winner < 0 || x.last < k.branches[winner].last) {
			winner = i
		}
	}
	return winner
}

// lose marks all branches except the winner, -1 for none, as lost and drops what they
// waited for.
func (k *fork) lose(winner int) {
	w := k.by.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, x := range k.branches {
		if i == winner {
			continue
		}
		x.lost, x.slower = !w.undoing, true
		w.lost = append(w.lost, x.path)
	}
	w.named = slices.DeleteFunc(w.named, func(n named) bool {
		lost := n.by.lostLocked()
		if lost {
			w.size -= n.Size()
		}
		return lost
	})
}
