package postgres

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// orderStatements are what Spawn and Refuse send besides those of a start.
var orderStatements = append([]string{"order_lock", "order_read"}, startStatements...)

// Order reads the row of a child's start that has no inception yet:
// store.ErrNotFound.
func (s *Store) Order(ctx context.Context, child journal.JobID) (*collation.Row, error) {
	var order *collation.Row
	err := s.query(ctx, "order_read", func() { order = nil }, func(v row) (err error) { order, err = readRow(v); return err }, pUUID(child))
	if err == nil && order == nil {
		err = fmt.Errorf("postgres: order: %w: no start of job %s waits for its inception", store.ErrNotFound, child)
	}
	return order, err
}

// openOrder begins a transaction on the row of a child's start, with what else
// is to be read in it, and finds the row as it was seen: store.ErrStale.
// Whoever begins the child, refuses it or takes it back holds this lock.
func (s *Store) openOrder(ctx context.Context, c *conn, seen *collation.Row, steps ...step) (*collation.Row, error) {
	if err := c.require(ctx, orderStatements...); err != nil {
		return nil, err
	}
	var order *collation.Row
	child := [][]byte{pUUID(seen.Job)}
	err := c.run(ctx, append([]step{
		{name: "begin"},
		{name: "order_lock", params: child},
		{"order_read", child, func(v row) (err error) { order, err = readRow(v); return err }},
	}, steps...)...)
	if err == nil && (order == nil || order.Sender != seen.Sender) {
		err = fmt.Errorf("postgres: order: %w: the start of job %s", store.ErrStale, seen.Job)
	}
	if err != nil {
		abandon(ctx, c)
		return nil, settleRead("order", err)
	}
	return order, nil
}

// Spawn begins the child that the row orders, in one transaction with no other
// job (1.11). Its row stays as the licence of the start, addressed to the
// trigger now.
func (s *Store) Spawn(
	ctx context.Context, seen *collation.Row, start store.Start, reply *collation.Row, mode collation.Mode,
) error {
	order, err := seen.Order()
	if err != nil {
		return rejected("spawn", err)
	}
	start.Child, start.Parent = seen.Job, &order.Parent
	var taken error
	err = s.decide(ctx, "spawn", func(c *conn) error {
		x := &starting{s: s, mode: mode}
		row, err := s.openOrder(ctx, c, seen, x.lookup([]store.Start{start})...)
		if err != nil {
			return err
		}
		out, fresh := x.incept([]store.Start{start})
		if taken = out[0].Err; taken != nil {
			abandon(ctx, c)
			return nil
		}
		fresh[0].Plan.Insert = nil // it stands already
		w, err := births(fresh)
		if err != nil {
			abandon(ctx, c)
			return err
		}
		row.Activity, row.DAD, row.Origin = start.Trigger, collation.RootDAD, fresh[0].Plan.Entry.Seq
		row.Sender, row.Undo = journal.JobID{}, false
		w.rows = append(w.rows, replaced(row))
		if reply != nil {
			w.rows = append(w.rows, inserted(reply))
		}
		return s.conclude(ctx, c, w.queue)
	})
	if err == nil && taken != nil {
		err = fmt.Errorf("postgres: spawn: %w", taken)
	}
	return err
}

// Refuse ends the row of a child's start that is refused.
func (s *Store) Refuse(ctx context.Context, seen *collation.Row, reply *collation.Row) error {
	return s.decide(ctx, "refuse", func(c *conn) error {
		if _, err := s.openOrder(ctx, c, seen); err != nil {
			return err
		}
		w := &writes{rows: []*rowWrite{deleted(seen)}}
		if reply != nil {
			w.rows = append(w.rows, inserted(reply))
		}
		return s.conclude(ctx, c, w.queue)
	})
}
