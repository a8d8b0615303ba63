package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/observer"
	"github.com/quipu-journal/quipu/wire"
)

var (
	// errOrder says that the row of a child's start cannot be read.
	errOrder = errors.New("the order of a child cannot be read")
	// errUnheard says that a child is refused and nobody waits to hear of it.
	errUnheard = errors.New("a job that nobody waits for cannot begin")
)

// refusal is why a child is not begun: an error of the await that ordered it
// (1.11), and not trouble of the engine.
type refusal struct {
	code  int
	class string
	cause error
}

func (r *refusal) Error() string { return r.cause.Error() }

// child begins the job that the row of a start orders, or refuses it (1.11): the
// inception is a transaction with no other job, its answer the row of an outcome.
// Neither begun nor an error: it was refused.
func (c *committer) child(ctx context.Context, row *collation.Row, now collation.Micros) (begun bool, err error) {
	order, err := row.Order()
	if err != nil {
		return false, fmt.Errorf("%w: %w", errOrder, err)
	}
	start, err := c.prepare(ctx, row.Job, order)
	if err == nil {
		err = c.spawn(ctx, row, order, start, now)
	}
	no, refused := errors.AsType[*refusal](err)
	switch {
	case refused && !heard(order):
		return false, fmt.Errorf("%w: %w", errUnheard, no)
	case refused:
		return false, c.refuse(ctx, row, order, no, now)
	}
	return err == nil, err
}

// heard says that somebody hears how the order ends: an await, at least of the
// child's begin, or a durable function. Nobody does of compensations, whose
// function has ended (3.5).
func heard(o *collation.StartOrder) bool { return o.Parent.Awaited || o.Parent.Turn > 0 }

// prepare checks the order as a start from outside is checked. The input of
// compensations, which holds that of their function, has no limit of its own.
func (c *committer) prepare(ctx context.Context, child journal.JobID, order *collation.StartOrder) (store.Start, error) {
	if order.Fault != "" {
		return store.Start{}, &refusal{http.StatusInternalServerError, collation.ReasonExpression, errors.New(order.Fault)}
	}
	ref, f, err := c.flows.Resolve(ctx, order.Flow, order.Version)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Start{}, &refusal{http.StatusNotFound, "not_found", err}
	case err != nil:
		return store.Start{}, err
	}
	// The order's JSON may spell a text otherwise than its canonical form does.
	input, err := canonical.Payload(order.Input)
	key := order.Key
	switch {
	case err != nil:
	case heard(order):
		key, err = CheckStart(f, key, input)
	default:
		err = checkKey(f, key)
	}
	if err != nil {
		return store.Start{}, &refusal{http.StatusBadRequest, "input", err}
	}
	return store.Start{
		Flow: ref, Trigger: f.Trigger().Name, Key: key, Input: input, Publish: true,
		Child: child, Parent: &order.Parent,
	}, nil
}

// spawn commits the inception of the child. Its trace is one of its own, linked
// to the parent's (5.4). A child whose end nobody waits for answers with its id.
func (c *committer) spawn(ctx context.Context, row *collation.Row, order *collation.StartOrder, start store.Start, now collation.Micros) error {
	trace, end := c.cfg.Observer.Root(context.Background(), observer.Subject{
		Space: c.cfg.Space, Job: row.Job.String(), Key: start.Key, Flow: start.Flow.Name, Link: order.Trace,
	})
	if trace == "" {
		trace = order.Trace // nobody traces here, but somebody may elsewhere
	}
	start.Trace = trace
	var replies []store.Outgoing
	var reply *collation.Row
	if !order.Parent.Awaited && heard(order) {
		id := append(canonical.AppendString([]byte(`{"id":`), start.Key), '}')
		r := order.Outcome(row.Job, &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: id}, now, c.mode)
		reply, replies = &r, []store.Outgoing{{Row: r, Trace: order.Trace}}
	}
	err := c.cfg.Store.Spawn(ctx, row, start, reply, c.mode)
	end(err)
	taken, conflict := errors.AsType[*store.AlreadyStartedError](err)
	switch {
	case err == nil:
		c.publish(ctx, replies, Origin{})
		return nil
	case conflict:
		return &refusal{http.StatusConflict, "conflict", fmt.Errorf("the key %.80q belongs to another job, %s: give the await an `id` that no job has", taken.Key, taken.Job)}
	case errors.Is(err, store.ErrRejected):
		return &refusal{http.StatusInternalServerError, "refused", err}
	}
	return fmt.Errorf("begin the child %s: %w", row.Job, err)
}

// refuse ends the row of a start with the error of the await that ordered it.
func (c *committer) refuse(ctx context.Context, row *collation.Row, order *collation.StartOrder, no *refusal, now collation.Micros) error {
	reply := order.Refusal(row.Job, no.code, no.class, wire.CutText(no.Error()), now, c.mode)
	if err := c.cfg.Store.Refuse(ctx, row, &reply); err != nil {
		return fmt.Errorf("refuse the child %s: %w", row.Job, err)
	}
	c.publish(ctx, []store.Outgoing{{Row: reply, Trace: order.Trace}}, Origin{})
	return nil
}
