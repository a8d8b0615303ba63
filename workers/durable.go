package workers

import (
	"context"
	"errors"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/durable"
)

// HandleDurable registers a durable function for a topic (3.5). Each turn runs it from
// its top, with the record of the earlier runs. It makes its calls to the outside in
// effects (effects.Do, quipu.DoTx), and it may wait with Sleep, Await and Child. A wait
// that is not over ends the run, and nothing is held in memory. When the wait is over the
// function runs again and passes it.
//
// The function must be deterministic: it reads the clock with Now, draws with Rand and
// UUID, and does things in parallel in branches of All or First; everything else it reads
// is in its input. A run that differs from the recorded path is parked with an
// *effects.NondeterminismError. Version lets the code change under running jobs.
//
// Input, output, errors and options are as for Handle, except Class: the body is no
// effect.
func HandleDurable[In, Out any](
	r *Registry, topic string, fn func(context.Context, In) (Out, error), options ...Option,
) {
	Handle(r, topic, fn, append(options[:len(options):len(options)], isDurable)...)
}

func isDurable(h *handler) error {
	if h.class != effects.Pure {
		return errors.New("a durable function names its effects itself: it has no class")
	}
	h.durable = true
	return nil
}

// All runs the branches of a durable function, each with its own context, and returns
// their values in order when all have ended. The error is that of the first branch, in
// order, that failed. A branch begins when the one before it has ended, waits, or is in a
// call outside. So calls outside overlap, and nothing else does. When all unfinished
// branches wait, the function is suspended.
//
// A panic of a branch becomes a panic of All. Outside a job the branches are goroutines.
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

// First runs branches as All does, and returns the index and the value or error of the
// branch that ended first. The choice is recorded. If several have ended, it takes the
// one whose last wait was over first, then the first in order. The contexts of the others
// end: they stop at their next call, their waits are cancelled, and the
// result of a call outside is still recorded but has no effect.
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
