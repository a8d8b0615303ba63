package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Driven is a store with a driver. Each operation is one transaction that loads, lets collation
// decide, and commits. Engines do that for many operations at once.
type Driven struct{ store.Store }

// maxAgain bounds how often an operation is decided again (C3).
const maxAgain = 10

// attempt is one attempt at an operation: what it loaded, and what it decided.
type attempt struct {
	*store.Loaded
	plans []store.Chained
	needs map[journal.JobID]*collation.Need // what decisions lack
	done  map[collation.RowKey]bool         // signals that were delivered
	out   []store.Outgoing                  // what it sends
}

// write adds a plan without an entry.
func (a *attempt) write(p *collation.Plan) { a.plans = append(a.plans, store.Chained{Plan: p}) }

// enter adds a plan with an entry of the job.
func (a *attempt) enter(j *collation.Job, p *collation.Plan) {
	a.plans = append(a.plans, store.Chain(j, p))
}

// lacks records what a decision needs, and reports whether it needs anything.
func (a *attempt) lacks(id journal.JobID, need *collation.Need) bool {
	if need != nil {
		a.needs[id] = need
	}
	return need != nil
}

// try runs an operation once. It calls decide again with what that lacked, until it lacks nothing.
// Without plans it writes nothing.
func try(ctx context.Context, tx store.Tx, wants []store.Want, decide func(*attempt) error) (wrote bool, err error) {
	a := &attempt{done: map[collation.RowKey]bool{}}
	if a.Loaded, err = tx.Load(ctx, wants, true); err != nil {
		return false, err
	}
	for first := true; first || len(a.needs) > 0; first = false {
		if !first {
			if err := tx.(store.Committer).More(ctx, a.needs); err != nil {
				return false, err
			}
		}
		a.needs = map[journal.JobID]*collation.Need{}
		if err := decide(a); err != nil {
			return false, err
		}
	}
	if len(a.plans) == 0 {
		return false, nil
	}
	return true, tx.Commit(ctx, a.plans)
}

// transact runs an operation, after a lost test-and-set again. If its session has ended, another
// try would not help.
func (d Driven) transact(ctx context.Context, wants []store.Want, decide func(*attempt) error) error {
	c, err := d.Committer(ctx, true)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 0; ; n++ {
		wrote, err := try(ctx, c, wants, decide)
		if !wrote {
			return errors.Join(err, c.Rollback(ctx))
		}
		lost, named := errors.AsType[*store.LostError](err)
		if !errors.Is(err, store.ErrLost) || n == maxAgain || named && lost.Session {
			return err
		}
	}
}

// join runs an operation inside the caller's transaction.
func (d Driven) join(ctx context.Context, tx any, wants []store.Want, decide func(*attempt) error) error {
	return d.Join(ctx, tx, func(t store.Tx) error {
		_, err := try(ctx, t, wants, decide)
		return err
	})
}

// Start begins jobs in one transaction, each after those before it; the results are in their order.
func (d Driven) Start(ctx context.Context, starts []store.Start, mode collation.Mode) ([]store.Started, error) {
	return d.start(ctx, starts, mode, d.transact)
}

// StartTx is Start inside the caller's transaction.
func (d Driven) StartTx(ctx context.Context, tx any, starts []store.Start, mode collation.Mode) ([]store.Started, error) {
	return d.start(ctx, starts, mode, func(ctx context.Context, wants []store.Want, decide func(*attempt) error) error {
		return d.join(ctx, tx, wants, decide)
	})
}

func (d Driven) start(
	ctx context.Context, starts []store.Start, mode collation.Mode, in func(context.Context, []store.Want, func(*attempt) error) error,
) ([]store.Started, error) {
	space, err := d.Space(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]store.Started, len(starts))
	wants := make([]store.Want, len(starts))
	for i := range starts {
		wants[i].Key = starts[i].Key
	}
	err = in(ctx, wants, func(a *attempt) error {
		for i := range starts {
			in := &starts[i]
			p := collation.Begin(in.Inception(space, a.Now), a.Holders[in.Key], mode)
			if p == nil {
				out[i] = already(in, a.Holders[in.Key])
				continue
			}
			out[i] = store.Started{Job: p.Job}
			a.Holders[in.Key] = &collation.Holder{ID: p.Job, State: journal.JobOpen, Flow: in.Flow, Input: in.Input}
			a.plans = append(a.plans, chain(p))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func chain(p *collation.Plan) store.Chained {
	e := p.Entry
	return store.Chain(&collation.Job{ID: e.Job, Space: e.Space, Generation: e.Generation}, p)
}

func already(in *store.Start, h *collation.Holder) store.Started {
	return store.Started{Job: h.ID, Err: &store.AlreadyStartedError{
		Job: h.ID, Key: in.Key, SameFlow: h.Flow.Name == in.Flow.Name, SameInput: bytes.Equal(h.Input, in.Input),
	}}
}

// Order reads the row of a child's start that has no inception yet:
// store.ErrNotFound.
func (d Driven) Order(ctx context.Context, child journal.JobID) (row *collation.Row, err error) {
	err = d.transact(ctx, []store.Want{{Order: child}}, func(a *attempt) error {
		if row = a.Orders[child]; row == nil {
			return fmt.Errorf("%w: no start of job %s waits for its inception", store.ErrNotFound, child)
		}
		return nil
	})
	return row, err
}

// ordered returns the row of an order, if it is still as it was seen: store.ErrStale.
func (a *attempt) ordered(seen *collation.Row) (*collation.Row, error) {
	if row := a.Orders[seen.Job]; row != nil && row.Sender == seen.Sender {
		return row, nil
	}
	return nil, fmt.Errorf("%w: the start of job %s", store.ErrStale, seen.Job)
}

// Spawn begins the child that the row orders, with its reply, if any.
func (d Driven) Spawn(ctx context.Context, seen *collation.Row, in store.Start, reply *collation.Row, mode collation.Mode) error {
	order, err := seen.Order()
	if err != nil {
		return err
	}
	space, err := d.Space(ctx)
	if err != nil {
		return err
	}
	return d.transact(ctx, []store.Want{{Order: seen.Job, Key: in.Key}}, func(a *attempt) error {
		row, err := a.ordered(seen)
		if err != nil {
			return err
		}
		x := in.Inception(space, a.Now)
		x.Order, x.Parent = row, &order.Parent
		p := collation.Begin(x, a.Holders[in.Key], mode)
		if p == nil {
			return already(&in, a.Holders[in.Key]).Err
		}
		if reply != nil {
			p.Insert = append(p.Insert, *reply)
		}
		a.plans = append(a.plans, chain(p))
		return nil
	})
}

// Refuse ends the row of a child's start that is refused, with its reply, if any.
func (d Driven) Refuse(ctx context.Context, seen *collation.Row, reply *collation.Row) error {
	return d.transact(ctx, []store.Want{{Order: seen.Job}}, func(a *attempt) error {
		row, err := a.ordered(seen)
		if err != nil {
			return err
		}
		p := &collation.Plan{Job: row.Job, Message: row.GUID, Outcome: collation.Handled, Delete: []journal.GUID{row.GUID}}
		if reply != nil {
			p.Insert = []collation.Row{*reply}
		}
		a.write(p)
		return nil
	})
}

// Interrupt inserts the row of an interrupt of a job, unless the interrupt is known. out is nil
// then, and also if the job is closed.
func (d Driven) Interrupt(ctx context.Context, row collation.Row, mode collation.Mode) (out *store.Outgoing, fresh bool, err error) {
	wants := []store.Want{{Job: row.Job, Row: row.GUID, Receipt: row.GUID, Known: row.GUID}}
	err = d.transact(ctx, wants, func(a *attempt) error {
		st := a.States[row.Job]
		if st == nil {
			return fmt.Errorf("%w: job %s", store.ErrNotFound, row.Job)
		}
		_, known := a.Known[row.GUID]
		p, err := collation.Interrupt(st, row, known, mode)
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrRejected, err)
		}
		if fresh = p != nil; !fresh {
			return nil
		}
		if len(p.Insert) > 0 {
			j := &st.Job
			out = &store.Outgoing{Row: p.Insert[0], JobKey: j.Key, Generation: j.Generation, Flow: j.Flow, Trace: j.Trace}
		}
		a.write(p)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return out, fresh, nil
}
