package work

import (
	"context"
	"errors"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// Record reads what is recorded of requests; every store is one.
type Record interface {
	// Effects lists the recorded effects of a request, in the order of their first entries.
	Effects(ctx context.Context, job journal.JobID, request journal.GUID) ([]store.EffectRow, error)
	// Pauses lists what a durable function has waited for, and then what it still waits for.
	Pauses(ctx context.Context, job journal.JobID, request journal.GUID) ([]store.Pause, error)
}

// fitsWait bounds one replay of Fits. A durable function that takes longer waits for something
// that is not recorded.
const fitsWait = time.Minute

// Fits says whether the registry's handler of a topic fits a request that was not answered yet
// (O12). Nothing is written, and no body of an effect is called. misfit says why it does not fit:
//
//   - its input does not fit the type that Handle was given;
//   - of a durable function, which is replayed against its record (Replay): it takes another path
//     than the recorded one, it panics, or it cannot read a recorded result.
//
// Any other handler is not run, because that would do its work. A request of compensations is
// replayed as the request that they undo. Errors: the topic has no handler; the record cannot be
// read.
func Fits(ctx context.Context, reg *workers.Registry, record Record, request wire.Request) (misfit, err error) {
	h, err := handlerOf(reg, request.Topic)
	if err != nil {
		return nil, err
	}
	q := ReplayRequest{Request: request}
	order, _, err := undoOrder(&request, request.Input)
	if err != nil {
		return err, nil
	}
	if order != nil {
		f := &function{req: &request}
		f.of(order)
		q.Request, q.Ended = *f.req, true
		q.Request.Input = f.in
	}
	if h.Takes != nil {
		panicked, ok := usercode.Try(func() { misfit = h.Takes(q.Request.Input) })
		switch {
		case !ok:
			return errors.New("its type panics when it reads the input: " + panicked), nil
		case misfit != nil:
			return errors.New(usercode.Text(misfit)), nil
		}
	}
	if !h.Durable {
		return nil, nil
	}
	job, err := journal.ParseJobID(q.Request.Job)
	if err != nil {
		return nil, err
	}
	id, err := journal.ParseGUID(q.Request.Request)
	if err != nil {
		return nil, err
	}
	if q.Effects, err = record.Effects(ctx, job, id); err != nil {
		return nil, err
	}
	if q.Pauses, err = record.Pauses(ctx, job, id); err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, fitsWait)
	defer cancel()
	got, err := Replay(within, reg, q)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case within.Err() != nil:
		return errors.New("its replay took more than a minute: it waits for something that is not recorded"), nil
	}
	return got.misfit(), nil
}

// misfit says why the code does not fit the record; nil: it does. A handler that fails otherwise
// may do so: that is its answer.
func (r *Replayed) misfit() error {
	if r.End == ReplayDiverged {
		return r.Err
	}
	if r.Response == nil || r.Response.Error == nil {
		return nil
	}
	switch r.Response.Error.Class {
	case wire.ClassPanic, wire.ClassInput, wire.ClassMisfit:
		return errors.New(r.Response.Error.Message)
	}
	return nil
}
