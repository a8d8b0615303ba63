package quipu

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
)

// ErrInterrupt: an option of an interrupt is malformed or over its limit. Nothing
// was sent.
var ErrInterrupt = errors.New("refused interrupt")

// InterruptResult is what became of an interrupt.
type InterruptResult struct {
	// Job is the job that has the key.
	Job Job
	// Duplicate says that an interrupt with the same idempotency key was sent to
	// the job before: this one did nothing. A key that met a closed job is known for as
	// long as that of a signal (W12).
	Duplicate bool
}

// Interrupt ends the job that has the key, as soon as an engine has taken the
// message: what is open of it is abandoned and cancelled (C15), and Wait returns a
// *JobError with the code and the reason. Children that it awaits go on, unless
// Descend. A job that has ended stays as it is.
//
// The error is ErrNotFound, ErrInterrupt, or the store's: with
// ErrUnavailable nothing was sent; with ErrUnknown it may have been,
// and the call may be repeated: a job is interrupted once.
func (rt *Runtime) Interrupt(ctx context.Context, jobKey string, opts ...InterruptOption) (InterruptResult, error) {
	o := interruptOptions{order: collation.InterruptOrder{
		Code: collation.CodeInterrupted, Reason: "interrupted", Throw: true, From: "a client",
	}}
	for _, opt := range opts {
		if err := opt.toInterrupt(&o); err != nil {
			return InterruptResult{}, fmt.Errorf("%w: %w", ErrInterrupt, err)
		}
	}
	job, err := rt.Find(ctx, jobKey)
	if err != nil {
		return InterruptResult{}, err
	}
	// The store says when it is due (J5).
	row, err := o.order.Row(collation.AskedInterruptGUID(o.id(), job.ID), job.ID, collation.Never)
	if err != nil {
		return InterruptResult{}, err
	}
	fresh, err := rt.committer.Interrupt(ctx, row)
	if err != nil {
		return InterruptResult{}, fmt.Errorf("interrupt job %.80q: %w", jobKey, err)
	}
	return InterruptResult{Job: job, Duplicate: !fresh}, nil
}
