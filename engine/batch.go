package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// maxLoads bounds the loads that one message may ask for; one that still misses
// something then is broken.
const maxLoads = 32

// batch is one transaction on its way: the items it decided, their plans in
// order, and what is left for others.
type batch struct {
	loaded *store.Loaded
	// open holds the messages that have steps left after this transaction: what
	// the next step reads is written by this one's commit.
	open    map[journal.GUID]bool
	repeats []*item // deliveries of such a message; they wait for its end
	plans   []store.Chained
	decided []*item
	busy    []*item // another transaction holds their job (J3)
	tombs   []*item // only the tombstone of their job is left (C5)
	orphans []*item // their job is not here
	began   time.Time
	took    time.Duration // load to commit
}

// transact carries the items through one transaction: load, decide, commit.
// Nothing is acked here.
func (c *committer) transact(ctx context.Context, items []*item, wait bool) (*batch, error) {
	b := &batch{began: time.Now(), open: map[journal.GUID]bool{}}
	wants := make([]store.Want, len(items))
	for i, it := range items {
		wants[i] = it.want(c.flows, c.mode)
		it.loads = 0
	}
	tx, err := c.connection(ctx)
	if err != nil {
		return nil, err
	}
	if b.loaded, err = tx.Load(ctx, wants, wait); err != nil {
		return nil, c.abandon(ctx, err)
	}
	if err := c.decide(ctx, tx, b, items); err != nil {
		return nil, c.abandon(ctx, err)
	}
	if len(b.plans) == 0 {
		return b, c.abandon(ctx, nil)
	}
	entering(b)
	if err := tx.Commit(ctx, b.plans); err != nil {
		return nil, c.abandon(ctx, err)
	}
	b.took = time.Since(b.began)
	return b, nil
}

// decide steps every item, in order; messages of one job fold. What a decision
// misses is loaded in the same transaction, and then the job goes on.
func (c *committer) decide(ctx context.Context, tx store.Committer, b *batch, items []*item) error {
	for len(items) > 0 {
		needs := map[journal.JobID]*collation.Need{}
		var later []*item
		for _, it := range items {
			if needs[it.msg.Job] != nil {
				later = append(later, it)
				continue
			}
			need, err := c.one(ctx, b, it)
			if err != nil {
				return err
			}
			if need == nil {
				continue
			}
			if it.loads++; it.loads > maxLoads {
				return fmt.Errorf("%w: message %s still misses state after %d loads", store.ErrRejected, it.msg.GUID, maxLoads)
			}
			needs[it.msg.Job] = need
			later = append(later, it)
		}
		if len(needs) > 0 {
			if err := tx.More(ctx, needs); err != nil {
				return err
			}
		}
		items = later
	}
	return nil
}

// one steps one item.
func (c *committer) one(ctx context.Context, b *batch, it *item) (*collation.Need, error) {
	job := it.msg.Job
	state := b.loaded.States[job]
	switch {
	case b.open[it.msg.GUID]:
		b.repeats = append(b.repeats, it)
		return nil, nil
	case state == nil && b.loaded.Busy[job]:
		b.busy = append(b.busy, it)
		return nil, nil
	case state == nil && b.loaded.Tombs[job]:
		b.tombs = append(b.tombs, it)
		return nil, nil
	case state == nil:
		b.orphans = append(b.orphans, it)
		return nil, nil
	}
	if state.Flow == nil {
		f, err := c.flows.Get(ctx, state.Job.Flow.Name, state.Job.Flow.Version)
		switch {
		case err == nil:
			state.Flow = f
		case errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded):
			return nil, err
		default: // this build cannot run the job; the others of the batch go on
			it.reject = err
		}
	}
	plan, need := c.step(state, it)
	if need != nil {
		return need, nil
	}
	it.plan = plan
	b.decided = append(b.decided, it)
	b.open[it.msg.GUID] = !plan.Done
	if plan.Entry != nil {
		chained := store.Chain(&state.Job, plan)
		state.Apply(plan)
		b.plans = append(b.plans, chained)
	}
	return nil, nil
}

// step runs the pure step. A panic in it is a broken invariant: it quarantines
// the job instead of taking the process down (J1).
func (c *committer) step(s *collation.State, it *item) (plan *collation.Plan, need *collation.Need) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("a broken invariant: the job is quarantined",
				"job", s.Job.Key, "message", it.msg.GUID.String(), "panic", r, "stack", string(debug.Stack()))
			plan, need = collation.Quarantine(s, &it.msg, c.mode, fmt.Errorf("panic: %v", r)), nil
		}
	}()
	if it.reject != nil {
		return collation.Hold(s, &it.msg, c.mode, it.reject), nil
	}
	if s.Receipts[it.msg.GUID] == nil {
		if err := it.read(s.Rows[it.msg.Row]); err != nil {
			return collation.Hold(s, &it.msg, c.mode, err), nil
		}
	}
	return collation.Step(s, &it.msg, c.mode)
}

// outgoing are the rows that the batch inserted or released, sent already as
// they say, and that still stand. A row of another job says where it goes by
// itself.
func (b *batch) outgoing() []store.Outgoing {
	gone := map[journal.GUID]bool{}
	last := map[journal.GUID]*collation.Row{} // what the batch leaves of the rows that it changed
	for i := range b.plans {
		p := b.plans[i].Plan
		for n := range p.Update {
			last[p.Update[n].GUID] = &p.Update[n]
		}
		for _, g := range p.Delete {
			gone[g] = true
		}
		for _, k := range p.Recall {
			gone[k.GUID] = true
		}
	}
	var out []store.Outgoing
	for i := range b.plans {
		p := b.plans[i].Plan
		job := &b.loaded.States[p.Job].Job
		send := func(row *collation.Row) {
			o := store.Outgoing{Row: *row, Trace: job.Trace}
			if row.Job == job.ID {
				o.JobKey, o.Generation, o.Flow = job.Key, job.Generation, job.Flow
			}
			out = append(out, o)
		}
		for n := range p.Insert {
			if row := &p.Insert[n]; row.Publication > 0 && !gone[row.GUID] {
				send(row)
			}
		}
		for n := range p.Update {
			if row := &p.Update[n]; row == last[row.GUID] && released(row, b.loaded.Now) && !gone[row.GUID] {
				send(row)
			}
		}
	}
	return out
}

// released says that the row is an element's whose turn has just come (1.11), or
// that of a function that was woken (E12): other updates leave their row to the
// sweeper.
func released(row *collation.Row, now collation.Micros) bool {
	return row.Kind == journal.MessageRequest && row.Held == "" && row.NextAt != collation.Never && // one that sleeps may have been claimed just now
		row.Publication > 0 && row.PublishedAt == now
}

// connection returns the committer's connection, opening a new session after a
// loss (L1).
func (c *committer) connection(ctx context.Context) (store.Committer, error) {
	if c.tx == nil {
		tx, err := c.cfg.Store.Committer(ctx)
		if err != nil {
			return nil, err
		}
		c.tx = tx
	}
	return c.tx, nil
}

// abandon ends the transaction without a trace and passes the error on. A
// connection that cannot even roll back is given up, its session with it.
func (c *committer) abandon(ctx context.Context, cause error) error {
	if c.tx == nil {
		return cause
	}
	err := c.tx.Rollback(ctx)
	if err != nil || errors.Is(cause, store.ErrUnavailable) || errors.Is(cause, store.ErrUnknown) {
		c.tx.Close()
		c.tx = nil
	}
	if cause == nil && err != nil {
		c.log.Debug("rollback of an empty batch", "error", err)
	}
	return cause
}
