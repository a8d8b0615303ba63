package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Driven is a store with a driver. Each operation is one transaction that loads, lets collation
// decide, and commits. Engines do that for many operations at once.
type Driven struct{ store.Store }

// maxAgain bounds how often an operation is decided again (C3).
const maxAgain = 10

// transact runs one operation. decide returns its plans, or none to write nothing.
func (d Driven) transact(ctx context.Context, wants []store.Want, decide func(*store.Loaded) ([]store.Chained, error)) error {
	return d.carry(ctx, wants, func(_ store.Committer, l *store.Loaded) ([]store.Chained, error) { return decide(l) })
}

// carry is transact for a decision that may need more, which it loads by More.
func (d Driven) carry(ctx context.Context, wants []store.Want, decide func(store.Committer, *store.Loaded) ([]store.Chained, error)) error {
	c, err := d.Committer(ctx, true)
	if err != nil {
		return err
	}
	defer c.Close()
	for attempt := 0; ; attempt++ {
		loaded, err := c.Load(ctx, wants, true)
		if err != nil {
			return err
		}
		plans, err := decide(c, loaded)
		if err != nil || len(plans) == 0 {
			return errors.Join(err, c.Rollback(ctx))
		}
		if err = c.Commit(ctx, plans); !again(err, attempt) {
			return err
		}
	}
}

// again says that an operation should be decided again. If its session has ended, another try
// would not help.
func again(err error, attempt int) bool {
	if lost, named := errors.AsType[*store.LostError](err); named && lost.Session {
		return false
	}
	return errors.Is(err, store.ErrLost) && attempt < maxAgain
}

// Start begins jobs in one transaction; the results are in the order of the starts.
func (d Driven) Start(ctx context.Context, starts []store.Start, mode collation.Mode) ([]store.Started, error) {
	space, err := d.Space(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]store.Started, len(starts))
	wants := make([]store.Want, len(starts))
	for i := range starts {
		wants[i].Key = starts[i].Key
	}
	err = d.transact(ctx, wants, func(l *store.Loaded) ([]store.Chained, error) {
		return beginAll(space, starts, out, l, mode), nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// StartTx is Start inside the caller's transaction.
func (d Driven) StartTx(ctx context.Context, tx any, starts []store.Start, mode collation.Mode) ([]store.Started, error) {
	space, err := d.Space(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]store.Started, len(starts))
	err = d.Join(ctx, tx, func(t store.Tx) error {
		wants := make([]store.Want, len(starts))
		for i := range starts {
			wants[i].Key = starts[i].Key
		}
		l, err := t.Load(ctx, wants, true)
		if err != nil {
			return err
		}
		plans := beginAll(space, starts, out, l, mode)
		if len(plans) == 0 {
			return nil
		}
		return t.Commit(ctx, plans)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// beginAll decides starts, each after those before it.
func beginAll(space string, starts []store.Start, out []store.Started, l *store.Loaded, mode collation.Mode) (plans []store.Chained) {
	for i := range starts {
		in := &starts[i]
		p := collation.Begin(in.Inception(space, l.Now), l.Holders[in.Key], mode)
		if p == nil {
			out[i] = already(in, l.Holders[in.Key])
			continue
		}
		out[i] = store.Started{Job: p.Job}
		l.Holders[in.Key] = &collation.Holder{ID: p.Job, State: journal.JobOpen, Flow: in.Flow, Input: in.Input}
		plans = append(plans, chain(p))
	}
	return plans
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
	err = d.transact(ctx, []store.Want{{Order: child}}, func(l *store.Loaded) ([]store.Chained, error) {
		if row = l.Orders[child]; row == nil {
			return nil, fmt.Errorf("%w: no start of job %s waits for its inception", store.ErrNotFound, child)
		}
		return nil, nil
	})
	return row, err
}

// ordered returns the row of an order, if it is still as it was seen: store.ErrStale.
func ordered(l *store.Loaded, seen *collation.Row) (*collation.Row, error) {
	if row := l.Orders[seen.Job]; row != nil && row.Sender == seen.Sender {
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
	return d.transact(ctx, []store.Want{{Order: seen.Job, Key: in.Key}}, func(l *store.Loaded) ([]store.Chained, error) {
		row, err := ordered(l, seen)
		if err != nil {
			return nil, err
		}
		x := in.Inception(space, l.Now)
		x.Order, x.Parent = row, &order.Parent
		p := collation.Begin(x, l.Holders[in.Key], mode)
		if p == nil {
			return nil, already(&in, l.Holders[in.Key]).Err
		}
		if reply != nil {
			p.Insert = append(p.Insert, *reply)
		}
		return []store.Chained{chain(p)}, nil
	})
}

// Refuse ends the row of a child's start that is refused, with its reply, if any.
func (d Driven) Refuse(ctx context.Context, seen *collation.Row, reply *collation.Row) error {
	return d.transact(ctx, []store.Want{{Order: seen.Job}}, func(l *store.Loaded) ([]store.Chained, error) {
		row, err := ordered(l, seen)
		if err != nil {
			return nil, err
		}
		p := &collation.Plan{Job: row.Job, Message: row.GUID, Outcome: collation.Handled, Delete: []journal.GUID{row.GUID}}
		if reply != nil {
			p.Insert = []collation.Row{*reply}
		}
		return []store.Chained{{Plan: p}}, nil
	})
}

// Interrupt inserts the row of an interrupt of a job, unless the interrupt is known. out is nil
// then, and also if the job is closed.
func (d Driven) Interrupt(ctx context.Context, row collation.Row, mode collation.Mode) (out *store.Outgoing, fresh bool, err error) {
	wants := []store.Want{{Job: row.Job, Row: row.GUID, Receipt: row.GUID, Known: row.GUID}}
	err = d.transact(ctx, wants, func(l *store.Loaded) ([]store.Chained, error) {
		st := l.States[row.Job]
		if st == nil {
			return nil, fmt.Errorf("%w: job %s", store.ErrNotFound, row.Job)
		}
		_, known := l.Known[row.GUID]
		p, err := collation.Interrupt(st, row, known, mode)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrRejected, err)
		}
		if fresh = p != nil; !fresh {
			return nil, nil
		}
		if len(p.Insert) > 0 {
			j := &st.Job
			out = &store.Outgoing{Row: p.Insert[0], JobKey: j.Key, Generation: j.Generation, Flow: j.Flow, Trace: j.Trace}
		}
		return []store.Chained{{Plan: p}}, nil
	})
	if err != nil {
		return nil, false, err
	}
	return out, fresh, nil
}

// Begin starts jobs for a test about something else, and returns their ids.
func Begin(t testing.TB, s store.Store, mode collation.Mode, starts ...store.Start) []journal.JobID {
	t.Helper()
	out, err := Driven{Store: s}.Start(t.Context(), starts, mode)
	require.NoError(t, err)
	ids := make([]journal.JobID, len(out))
	for i := range out {
		require.NoError(t, out[i].Err)
		ids[i] = out[i].Job
	}
	return ids
}
