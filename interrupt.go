package quipu

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
)

// ErrInterrupt says that an option of an interrupt is malformed or over its limit. Nothing was
// sent.
var ErrInterrupt = errors.New("refused interrupt")

// InterruptResult is the outcome of an interrupt.
type InterruptResult struct {
	// Job is the job that was meant. It has its key.
	Job Job
	// Duplicate says that this call did nothing: the job was sent an interrupt with the same
	// idempotency key before. The key of an interrupt that met a closed job is known as long as
	// that of a signal (W12).
	Duplicate bool
	// Closed says that the job had ended already, so this call changed nothing. With Duplicate,
	// the earlier interrupt may be what ended it.
	Closed bool
}

// Interrupt ends a job as soon as an engine handles the message. A job with an ID is that one: another
// job that has its key by now, because it was resumed or started anew, is left alone. A job with only
// a key is the one that has the key now. The job's open work is abandoned and cancelled (C15), and
// Wait returns a *JobError with the code and the reason. Children that it awaits go on, unless Descend
// is set. A job that has ended stays as it is: that is no error, and InterruptResult.Closed says it.
//
// Errors: ErrNotFound, ErrInterrupt, or the store's. With ErrUnavailable nothing was sent; with
// ErrUnknown it may have been, and the call may be repeated, since a job is interrupted only
// once.
func (rt *Runtime) Interrupt(ctx context.Context, job Job, opts ...InterruptOption) (InterruptResult, error) {
	o := interruptOptions{order: collation.InterruptOrder{
		Code: collation.CodeInterrupted, Reason: "interrupted", Throw: true, From: "a client",
	}}
	for _, opt := range opts {
		if err := opt.toInterrupt(&o); err != nil {
			return InterruptResult{}, fmt.Errorf("%w: %w", ErrInterrupt, err)
		}
	}
	job, err := rt.known(ctx, job)
	if err != nil {
		return InterruptResult{}, err
	}
	// The store sets the due time (J5).
	row, err := o.order.Row(collation.AskedInterruptGUID(o.id(), job.ID), job.ID, collation.Never)
	if err != nil {
		return InterruptResult{}, err
	}
	done, err := rt.committer.Interrupt(ctx, row, !rt.proc.Decides())
	if err != nil {
		return InterruptResult{}, fmt.Errorf("interrupt job %.80q: %w", job.name(), err)
	}
	return InterruptResult{Job: Job{ID: job.ID, Key: done.Key}, Duplicate: !done.Fresh, Closed: done.Closed}, nil
}
