package workers

import (
	"context"
	"errors"

	"github.com/quipu-journal/quipu/durable"
	"github.com/quipu-journal/quipu/effects"
)

// HandleDurable registers a durable function for a topic (3.5). It is run from the
// top for every answer, and is given what is recorded of the runs before: what it
// does outside it does in effects (effects.Do, quipu.DoTx), and it may wait, with
// Sleep, Await and Child. A wait that is not over ends the run; nothing is held in
// memory meanwhile, and when it is over the function runs again and gets by.
//
// So the function has to take the same path with the same results: its clock is
// Now, its chance Rand and UUID, what it does at the same time are branches of All
// or First, and what else it reads stands in its input. A run that takes another
// path than the recorded one is parked with an *effects.NondeterminismError;
// Version changes the code under running jobs.
//
// Input, output, errors and options are as for Handle, but for Class: the body
// is no effect.
func HandleDurable[In, Out any](r *Registry, topic string, fn func(context.Context, In) (Out, error), options ...Option) {
	Handle(r, topic, fn, append(options[:len(options):len(options)], isDurable)...)
}

func isDurable(h *handler) error {
	if h.class != effects.Pure {
		return errors.New("a durable function names its effects itself: it has no class")
	}
	h.durable = true
	return nil
}

// All runs the branches of a durable function, each with its context, and returns
// their values in order when all have ended; the error is that of the first, in
// order, that has one. Branches begin in order, each when the one before has ended,
// waits, or is in a call outside; so calls outside go on at the same time, and
// nothing else does. Where a branch waits for what has not come, and no other goes
// on, the function is suspended.
//
// A panic of a branch is that of All. Outside a job the branches are goroutines.
func All[T any](ctx context.Context, branches ...func(context.Context) (T, error)) ([]T, error) {
	values, errs := make([]T, len(branches)), make([]error, len(branches))
	bodies := make([]func(context.Context), len(branches))
	for i, branch := range branches {
		bodies[i] = func(ctx context.Context) { values[i], errs[i] = branch(ctx) }
	}
	if err := durable.All(ctx, bodies); err != nil {
		return nil, err
	}
	for _, err := range errs {
		if err != nil {
			return values, err
		}
	}
	return values, nil
}

// First runs branches as All does, and returns the value or the error of the first
// that ended, with its index. Which it was is recorded. Of several that have ended
// it is the one whose last wait was over first, then the first in order. The
// contexts of the others end with ErrLost: they go on no further than their next
// call, what they wait for is cancelled, and a result that they come to outside is
// recorded and of no consequence.
func First[T any](ctx context.Context, branches ...func(context.Context) (T, error)) (index int, value T, err error) {
	values, errs := make([]T, len(branches)), make([]error, len(branches))
	bodies := make([]func(context.Context), len(branches))
	for i, branch := range branches {
		bodies[i] = func(ctx context.Context) { values[i], errs[i] = branch(ctx) }
	}
	if index, err = durable.First(ctx, bodies); err != nil {
		return 0, value, err
	}
	return index, values[index], errs[index]
}
