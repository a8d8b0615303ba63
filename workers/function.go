package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/durable"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/wire"
)

// ending is what the run of a handler came to.
type ending struct {
	out      []byte
	err      error
	response *wire.Response // nil: out and err say it
}

// function is a run of a durable function.
type function struct {
	h       *handler
	req     *wire.Request // as the function sees it
	in      []byte
	session *effects.Session
	durable *durable.Function    // nil of other handlers
	order   *collation.UndoOrder // of a run for the compensations of another request
	frozen  bool                 // a replay: nothing is begun
}

// of makes the run one for the compensations of the ordered request: the function
// gets that one's input, and sees itself in its place.
func (f *function) of(o *collation.UndoOrder) {
	q := *f.req
	q.Job, q.Key, q.Generation, q.Flow, q.Version = o.Job, o.Key, o.Generation, o.Flow, o.Version
	q.Activity, q.DAD, q.Element, q.Request = o.Activity, o.DAD, o.Element, o.Request
	f.order, f.req, f.in = o, &q, o.Input
}

// undoOrder reads the order out of a request of the flow of compensations; nil of
// another flow.
func undoOrder(q *wire.Request, in []byte) (*collation.UndoOrder, *durable.Original, error) {
	if q.Flow != flow.UndoName {
		return nil, nil, nil
	}
	o := &collation.UndoOrder{}
	if err := json.Unmarshal(in, o); err != nil {
		return nil, nil, fmt.Errorf("its input is no order of compensations: %w", err)
	}
	job, err := journal.ParseJobID(o.Job)
	if err != nil {
		return nil, nil, fmt.Errorf("its input is no order of compensations: job: %w", err)
	}
	request, err := journal.ParseGUID(o.Request)
	if err != nil {
		return nil, nil, fmt.Errorf("its input is no order of compensations: request: %w", err)
	}
	if _, err := collation.ParseDAD(o.DAD); err != nil {
		return nil, nil, fmt.Errorf("its input is no order of compensations: %w", err)
	}
	return o, &durable.Original{Job: job, Request: request}, nil
}

// run runs the function. Where the journal could not be used, or the request is
// not the run's any more, it gives no response: the session's verdict says so.
func (f *function) run(ctx context.Context) ending {
	ctx = context.WithValue(ctx, callKey{}, f.req) // for compensations, too
	if err := f.durable.Load(ctx); err != nil {
		return ending{err: err}
	}
	if f.order != nil && !f.durable.Undoable() {
		return f.parks(ClassUndo, fmt.Errorf("nothing is recorded of request %s of job %s any more: see by hand what it left outside", f.order.Request, f.order.Job))
	}
	if _, undoing := f.durable.Undoing(); undoing {
		return f.undo(ctx)
	}
	e := f.answer(ctx, f.pass(ctx))
	if f.frozen || !f.fails(e.response) || ctx.Err() != nil || !f.durable.Undoable() {
		return e
	}
	cause := *e.response
	cause.Kind, cause.RetryAfterMS = journal.ResponseTerminal, 0
	raw, err := canonical.Payload(wire.Encode(&cause))
	if err != nil {
		return ending{err: fmt.Errorf("record why the function is undone: %w", err)}
	}
	if err := f.durable.BeginUndo(ctx, raw); err != nil {
		return ending{err: err}
	}
	return f.undo(ctx)
}

// pass runs the function from its top.
func (f *function) pass(ctx context.Context) durable.Ending {
	end := f.durable.Run(ctx, func(ctx context.Context) ([]byte, error) { return f.h.wrapped(f.h.fn)(ctx, f.in) })
	if p, ok := errors.AsType[*durable.PanicError](end.Err); ok {
		end.Err = &panicError{value: p.Value, stack: p.Stack}
	}
	return end
}

// answer is what a pass comes to.
func (f *function) answer(ctx context.Context, end durable.Ending) ending {
	verdict := f.session.Verdict()
	timedOut := errors.Is(context.Cause(ctx), ErrTimeout)
	if isTrouble(verdict) {
		return ending{err: end.Err}
	}
	var r *wire.Response
	switch {
	case end.Suspended && verdict != nil:
		r, end.Err = failure(verdict, timedOut), verdict
	case end.Suspended:
		r = wire.SuspendedUntil(end.Pauses)
	case end.Err != nil:
		r = overruled(failure(end.Err, timedOut), end.Err, verdict, timedOut)
	default:
		r = overruled(success(f.h.topic, end.Result), nil, verdict, timedOut)
	}
	// What a failed attempt did not come by, the next one does; a run that was cut off
	// proves nothing.
	cut := verdict != nil || end.Err != nil && ctx.Err() != nil
	if r.Error == nil || f.fails(r) && !cut {
		if err := f.unasked(); err != nil {
			return ending{err: err, response: failure(err, false)}
		}
	}
	return ending{out: end.Result, err: end.Err, response: r}
}

// unasked is the difference that shows at the end: a recorded call that was not
// made.
func (f *function) unasked() error {
	if f.frozen && f.session.Stopped() != nil {
		return nil
	}
	return f.durable.Unasked()
}

// fails reports a response that ends the activity with an error.
func (f *function) fails(r *wire.Response) bool {
	if r == nil || r.Error == nil {
		return false
	}
	return r.Kind == journal.ResponseTerminal || r.Kind == journal.ResponseFailedAttempt && f.req.Attempt >= f.req.Attempts
}

// undo runs the function once more, for its compensations, and then those.
func (f *function) undo(ctx context.Context) ending {
	f.pass(ctx)
	if err := f.session.Verdict(); isTrouble(err) {
		return ending{err: err}
	} else if ctx.Err() != nil {
		return f.cut(context.Cause(ctx))
	} else if differs, ok := errors.AsType[*effects.NondeterminismError](err); ok {
		return ending{err: differs, response: failure(differs, false)}
	}
	if err := f.durable.Unasked(); err != nil {
		return ending{err: err, response: failure(err, false)}
	}
	err := f.durable.Undo(ctx)
	failed, ok := errors.AsType[*durable.UndoError](err)
	switch {
	case err == nil:
		return f.undone()
	case !ok:
		return ending{err: err, response: failure(err, false)}
	case errors.Is(context.Cause(ctx), ErrDraining):
		return f.cut(ErrDraining)
	case failed.Failures >= durable.MaxUndoAttempts:
		return f.parks(ClassUndo, fmt.Errorf("%w; see to it outside, then `quipu dead retry` runs it again, and `quipu dead done` with --result null takes it for done", failed))
	}
	return ending{response: wire.SuspendedUntil([]wire.Pause{failed.Pause()})}
}

// cut is the response of a run that was cut off before its compensations: a drained
// one is handed back, others leave them to a job of their own.
func (f *function) cut(cause error) ending {
	if f.order != nil || errors.Is(cause, ErrDraining) {
		return ending{err: cause, response: failure(cause, errors.Is(cause, ErrTimeout))}
	}
	return f.caused(false)
}

// undone is the response of a function whose compensations have run.
func (f *function) undone() ending {
	if f.order != nil {
		return ending{response: success(f.h.topic, []byte("null"))}
	}
	return f.caused(true)
}

// caused is the response with the error for which the function is undone.
func (f *function) caused(undone bool) ending {
	raw, _ := f.durable.Undoing()
	r := &wire.Response{}
	if err := json.Unmarshal(raw, r); err != nil || r.Error == nil {
		r = refused(collation.CodeInternal, ClassUndo, "the function was undone; why, cannot be read from its record")
	}
	r.Undone = undone
	return ending{err: errors.New(r.Error.Message), response: r}
}

// parks leaves the request to a person.
func (f *function) parks(class string, err error) ending {
	return ending{err: err, response: &wire.Response{
		Kind: journal.ResponseParked, Code: collation.CodeInternal, Error: &wire.Failure{Class: class, Message: wire.CutText(err.Error())},
	}}
}

// isTrouble reports a verdict after which nothing is answered now.
func isTrouble(verdict error) bool {
	var trouble *effects.StoreError
	return errors.As(verdict, &trouble) || errors.Is(verdict, effects.ErrBusy)
}
