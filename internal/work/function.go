package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// ending is the outcome of a handler's run.
type ending struct {
	out      []byte
	err      error
	response *wire.Response // nil: made from out and err
}

// function is a run of a durable function.
type function struct {
	h       *port.Handler
	req     *wire.Request // as the function sees it
	in      []byte
	session *effect.Session
	durable *durable.Function    // nil for other handlers
	order   *collation.UndoOrder // set when the run serves the compensations of another request
	frozen  bool                 // a replay: no effect and no wait is begun
	raw     error                // of a replay: the error of the handler, for who asked for it
}

// of makes this the run for the compensations that o orders: the function gets the input
// of the original request, and Info shows that request.
func (f *function) of(o *collation.UndoOrder) {
	q := *f.req
	q.Job, q.Key, q.Generation, q.Flow, q.Version = o.Job, o.Key, o.Generation, o.Flow, o.Version
	q.Activity, q.DAD, q.Element, q.Request = o.Activity, o.DAD, o.Element, o.Request
	q.Root, q.RootGeneration = o.Root, o.RootGeneration
	f.order, f.req, f.in = o, &q, o.Input
}

// undoOrder reads the order from a request of the flow of compensations; nil for other
// flows.
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

// run runs the function. It gives no response where the journal could not be used, or the
// request no longer belongs to the run; the session's verdict tells.
func (f *function) run(ctx context.Context) ending {
	ctx = port.WithRequest(ctx, f.req) // for compensations, too
	if err := f.durable.Load(ctx); err != nil {
		return ending{err: err}
	}
	if f.order != nil && !f.durable.Undoable() {
		return f.parks(wire.ClassUndo, fmt.Errorf("nothing is recorded of request %s of job %s any more: see by hand what it left outside", f.order.Request, f.order.Job))
	}
	if _, undoing := f.durable.Undoing(); undoing {
		return f.undo(ctx)
	}
	return f.ends(ctx, f.pass(ctx))
}

// goOn goes on where from stands; ok is false if the function has to run from its top.
func (f *function) goOn(ctx context.Context, from *durable.Function) (e ending, ok bool) {
	ctx = port.WithRequest(ctx, f.req)
	end, ok := f.durable.GoOn(ctx, from)
	if !ok {
		return e, false
	}
	return f.ends(ctx, end), true
}

// ends answers what a pass came to, and runs the compensations where it is the last one.
func (f *function) ends(ctx context.Context, end durable.Ending) ending {
	e := f.answer(ctx, end)
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
	return f.durable.Run(ctx, func(ctx context.Context) ([]byte, error) { return f.h.Call(ctx, f.in) })
}

// answer makes a response of what a pass came to.
func (f *function) answer(ctx context.Context, end durable.Ending) ending {
	verdict := f.session.Verdict()
	f.raw, end.Err = end.Err, readError(end.Err)
	timedOut := errors.Is(context.Cause(ctx), workers.ErrTimeout)
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
		r = overruled(success(f.h.Topic, end.Result), nil, verdict, timedOut)
	}
	// A success, and an error that the function means to end with, must have asked for every
	// recorded call. A failed attempt shows no other path, also if it is the last (E8): what is
	// around the function, a middleware for example, may have failed before it. A run that was
	// cut off proves nothing either.
	cut := verdict != nil || end.Err != nil && ctx.Err() != nil
	if r.Error == nil || r.Kind == journal.ResponseTerminal && !cut {
		if err := f.unasked(); err != nil {
			return ending{err: err, response: failure(err, false)}
		}
	}
	return ending{out: end.Result, err: end.Err, response: r}
}

// unasked is the error of a run that ended without making a recorded call.
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
	return r.Kind == journal.ResponseTerminal ||
		r.Kind == journal.ResponseFailedAttempt && f.req.Attempt >= f.req.Attempts
}

// undo runs the function once more to register its compensations, then runs them.
func (f *function) undo(ctx context.Context) ending {
	end := f.pass(ctx)
	verdict := toldOf(f.session.Verdict())
	switch {
	case isTrouble(f.session.Verdict()):
		return ending{err: verdict}
	case ctx.Err() != nil:
		return f.cut(context.Cause(ctx))
	case verdict != nil && verdict.doubt != nil:
		return ending{err: verdict, response: verdict.doubt}
	}
	if differs := f.durable.Unasked(); differs != nil {
		return f.stopped(ctx, toldOf(end.Err), verdict, differs)
	}
	err := f.durable.Undo(ctx)
	failed, ok := errors.AsType[*durable.UndoError](err)
	switch {
	case err == nil:
		return f.undone()
	case !ok && ctx.Err() != nil:
		return f.cut(context.Cause(ctx))
	case !ok:
		return ending{err: err, response: failure(err, false)}
	case errors.Is(context.Cause(ctx), workers.ErrDraining):
		return f.cut(workers.ErrDraining)
	case failed.Failures >= durable.MaxUndoAttempts:
		return f.parks(wire.ClassUndo, fmt.Errorf("%w; see to it outside, then `quipu dead retry` runs it again, and `quipu dead done` with --result null takes it for done", failed))
	}
	return f.again(ctx, failed)
}

// stopped is the ending of a run for compensations that did not come by all recorded calls. That
// is another path than the recorded one (E15), unless the run failed as an attempt may fail that is
// tried again: by a panic, by a middleware, by an error of no kind. Then it comes again, as after a
// compensation that fails.
func (f *function) stopped(ctx context.Context, err, verdict *told, differs error) ending {
	if err == nil || verdict != nil {
		err = verdict
	}
	if f.frozen || err == nil || err.kind != journal.ResponseFailedAttempt || err.doubt != nil {
		return ending{err: differs, response: failure(differs, false)}
	}
	failed := f.durable.Stopped(err)
	if failed.Failures >= durable.MaxUndoAttempts {
		return f.parks(wire.ClassNondeterminism, fmt.Errorf("%w, before it had come by all that is recorded: %w", failed, differs))
	}
	return f.again(ctx, failed)
}

// again lets the request come again after a wait, for the compensations that have not run.
func (f *function) again(ctx context.Context, failed *durable.UndoError) ending {
	pause := failed.Pause()
	Logger(ctx).Warn("a compensation failed; it runs again", "compensation", failed.Name,
		"failures", failed.Failures, "at_most", durable.MaxUndoAttempts, "in", time.Duration(pause.For)*time.Microsecond, "error", failed.Err)
	return ending{response: wire.SuspendedUntil([]wire.Pause{pause})}
}

// cut is the response of a run that was cut off before its compensations. A drained run
// is handed back; any other leaves the compensations to a job of their own.
func (f *function) cut(cause error) ending {
	if f.order != nil || errors.Is(cause, workers.ErrDraining) {
		return ending{err: cause, response: failure(cause, errors.Is(cause, workers.ErrTimeout))}
	}
	return f.caused(false)
}

// undone is the response of a function whose compensations have run.
func (f *function) undone() ending {
	if f.order != nil {
		return ending{response: success(f.h.Topic, []byte("null"))}
	}
	return f.caused(true)
}

// caused is the response with the error for which the function is undone.
func (f *function) caused(undone bool) ending {
	raw, _ := f.durable.Undoing()
	r := &wire.Response{}
	if err := json.Unmarshal(raw, r); err != nil || r.Error == nil {
		r = refused(collation.CodeInternal, wire.ClassUndo, "the function was undone; why, cannot be read from its record")
	}
	r.Undone = undone
	return ending{err: errors.New(r.Error.Message), response: r}
}

// parks leaves the request to a person.
func (f *function) parks(class string, err error) ending {
	return ending{err: err, response: &wire.Response{
		Kind: journal.ResponseParked, Code: collation.CodeInternal,
		Error: &wire.Failure{Class: class, Message: wire.CutText(err.Error())},
	}}
}

// isTrouble reports a verdict after which the run gives no answer yet.
func isTrouble(verdict error) bool {
	var trouble *effect.StoreError
	return errors.As(verdict, &trouble) || errors.Is(verdict, effect.ErrBusy)
}
