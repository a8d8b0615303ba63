package quiputest

import (
	"context"
	"encoding/json"

	"github.com/quipu-journal/quipu/internal/durable"
)

// These functions run a durable function without a world (E14).

// Plain calls a durable function outside a job, without a record. When
// the function returns an error its compensations run once each, the latest registered
// first. Their errors are joined to that of the function.
func Plain[In, Out any](ctx context.Context, fn func(context.Context, In) (Out, error), in In) (Out, error) {
	ctx, undo := durable.Plain(ctx)
	out, err := fn(ctx, in)
	if err != nil {
		err = undo(err)
	}
	return out, err
}

// WithSignals gives signals to functions that are called outside a job. source returns
// the payload of the next one, any value that marshals to JSON, or blocks until ctx ends.
// workers.Await returns its error, for example a *workers.SignalError. Within a job
// WithSignals has no effect.
func WithSignals(
	ctx context.Context, source func(ctx context.Context, topic, key string) (any, error),
) context.Context {
	return durable.WithSignals(ctx, source)
}

// WithChildren gives children to functions that are called outside a job. run returns the
// output of one, any value that marshals to JSON. workers.Child returns its error, for
// example a *workers.ChildError. Within a job WithChildren has no effect.
func WithChildren(
	ctx context.Context, run func(ctx context.Context, name, flow string, input json.RawMessage) (any, error),
) context.Context {
	return durable.WithChildren(ctx, run)
}
