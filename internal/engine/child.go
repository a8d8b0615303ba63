package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

var (
	// errOrder says that the row of a child's start cannot be read.
	errOrder = errors.New("the order of a child cannot be read")
	// errNobodyWaits says that a job cannot begin and that nobody waits for the refusal.
	errNobodyWaits = errors.New("a job that nobody waits for cannot begin")
)

// refusal is why a child is not begun: an error of the await that ordered it (1.11), not of the
// engine.
type refusal struct {
	code  int
	class string
	cause error
}

func (r *refusal) Error() string { return r.cause.Error() }

// begun is what a message that begins a child keeps between attempts.
type begun struct {
	asks string // the key of its order
	key  string // the same key, once its holder has to be looked up
}

// lose learns what the inception of a child was lost to.
func (c *begun) lose(e *store.LostError) {
	if slices.Contains(e.Keys, c.asks) {
		c.key = c.asks
	}
}

// order begins the child that a start row orders, or refuses it (1.11). It reads the row, which
// is locked, and who has the key, but only after the key was lost to another. It decides on the
// inception with the first steps, or on the refusal. It writes these, and the answer "it has
// begun" if nobody waits for the child's end.
func (m *message) order(ctx context.Context, b *batch, row *collation.Row) (*collation.Plan, error) {
	if row.Topic == collation.TopicAsk {
		return m.asked(ctx, b, row)
	}
	order, err := row.Order()
	if err != nil {
		b.deadLetter(m, reasonUndecodable, fmt.Errorf("%w: %w", errOrder, err))
		return nil, nil
	}
	in, f, err := m.prepare(ctx, b, row, order)
	if err == nil {
		err = m.begin(b, in, f)
	}
	no, refused := errors.AsType[*refusal](err)
	switch {
	case err == nil:
		return m.plan, nil
	case errors.Is(err, flow.ErrStopped):
		return m.halted(), nil
	case !refused:
		return nil, failed(err)
	case !order.Heard():
		m.holdCompensations(b, row, fmt.Errorf("%w: %w", errNobodyWaits, no))
	default:
		b.refuse(row, order, no)
	}
	return nil, nil
}

// resolve is Flows.Resolve, which may have to read the flow.
func (l *loop) resolve(ctx context.Context, name, version string) (journal.FlowRef, *flow.Flow, error) {
	defer l.progress.wait()()
	return l.flows.Resolve(ctx, name, version)
}

// begin adds the inception of a child to the batch. Error: *refusal if a job has the key.
func (m *message) begin(b *batch, in collation.Inception, f *flow.Flow) error {
	held := b.keyHolder(in.Key)
	in.Keep = f.Expire()
	in.Space, in.Now = b.cfg.Space, b.loaded.Now // a child has a trace of its own, linked to its parent's (O1)
	p := collation.Begin(in, held, b.mode)
	if p == nil {
		return &refusal{http.StatusConflict, "conflict", fmt.Errorf(
			"the key %.80q belongs to another job, %s: give the await an `id` that no job has", in.Key, held.ID)}
	}
	if first := b.begin(p, f); first != nil {
		p = first
	} else {
		p.Done = false
	}
	m.plan = p
	return nil
}

// refuse ends the row of a start with the error of the await that ordered it.
func (b *batch) refuse(row *collation.Row, order *collation.StartOrder, no *refusal) {
	p := order.Refused(row, no.code, no.class, wire.CutText(no.Error()), b.loaded.Now, b.mode)
	b.write(p)
	b.out = append(b.out, store.Outgoing{Row: p.Insert[0], Trace: order.Trace})
}

// prepare checks the order like a start from outside. The input of compensations contains that
// of their function, so it has no limit of its own.
func (m *message) prepare(
	ctx context.Context, b *batch, row *collation.Row, order *collation.StartOrder,
) (collation.Inception, *flow.Flow, error) {
	var none collation.Inception
	switch {
	case order.Fault != "":
		return none, nil, &refusal{http.StatusInternalServerError, collation.ReasonExpression, errors.New(order.Fault)}
	case heldFor(m.reject) == collation.ReasonSlow:
		return none, nil, &refusal{http.StatusInternalServerError, collation.ReasonSlow, m.reject}
	case m.reject != nil:
		return none, nil, &refusal{http.StatusInternalServerError, "refused", m.reject}
	case order.Parent.Depth > journal.MaxDepth:
		return none, nil, &refusal{http.StatusBadRequest, "depth", fmt.Errorf(
			"%d jobs would wait above a job of flow %q: at most %d may; a flow that awaits itself has to end, or to await only the begin (await: false)",
			order.Parent.Depth, order.Flow, journal.MaxDepth)}
	}
	ref, f, err := b.resolve(ctx, order.Flow, order.Version)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return none, nil, &refusal{http.StatusNotFound, "not_found", err}
	case err != nil:
		return none, nil, err
	}
	// An order of another build may escape texts in another way than the canonical form.
	input, err := canonical.Payload(order.Input)
	key := order.Key
	switch {
	case err != nil:
	case order.Heard():
		key, err = CheckStart(f, key, input, b.cfg.KeptKey, b.tooSlow)
	default:
		err = checkKey(f, key)
		key = b.cfg.KeptKey(key)
	}
	switch {
	case errors.Is(err, flow.ErrStopped):
		return none, nil, err
	case err != nil:
		return none, nil, &refusal{http.StatusBadRequest, "input", err}
	}
	m.child.asks = key
	return collation.Inception{
		Key: key, Flow: ref, Trigger: f.Trigger().Name, Input: input, Order: row, Parent: &order.Parent,
		Active: order.Version == "",
	}, f, nil
}
