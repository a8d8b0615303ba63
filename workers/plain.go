package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/internal/wire"
)

// These functions run a durable function outside a job (E14).

var (
	errNoSignals  = errors.New("outside a job no signals come: give the function some with workers.WithSignals")
	errNoChildren = errors.New("outside a job there are no children: give the function some with workers.WithChildren")
)

type signalsKey struct{}

type childrenKey struct{}

// WithSignals gives signals to functions that are called outside a job. source returns
// the payload of the next one, any value that marshals to JSON, or blocks until ctx ends.
// Await returns its error, for example a *SignalError. Within a job WithSignals has no
// effect.
func WithSignals(ctx context.Context, source func(ctx context.Context, topic, key string) (any, error)) context.Context {
	return context.WithValue(ctx, signalsKey{}, source)
}

// WithChildren gives children to functions that are called outside a job. run returns the
// output of one, any value that marshals to JSON. Child returns its error, for example a
// *ChildError. Within a job WithChildren has no effect.
func WithChildren(ctx context.Context, run func(ctx context.Context, name, flow string, input json.RawMessage) (any, error)) context.Context {
	return context.WithValue(ctx, childrenKey{}, run)
}

// Plain calls a durable function outside a job, as a test does, without a record. When
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

func plainAwait(ctx context.Context, a awaiting, timeout time.Duration) ([]byte, error) {
	source, ok := ctx.Value(signalsKey{}).(func(context.Context, string, string) (any, error))
	if !ok {
		return nil, fmt.Errorf("signal %q: %w", a.topic, errNoSignals)
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, ErrAwaitTimeout)
		defer cancel()
	}
	payload, err := source(ctx, a.topic, a.key)
	switch {
	case err == nil:
		return json.Marshal(payload)
	case errors.Is(context.Cause(ctx), ErrAwaitTimeout):
		return nil, ErrAwaitTimeout
	}
	return nil, err
}

func plainChild(ctx context.Context, p wire.Pause) ([]byte, error) {
	run, ok := ctx.Value(childrenKey{}).(func(context.Context, string, string, json.RawMessage) (any, error))
	if !ok {
		return nil, fmt.Errorf("child %q: %w", p.Name, errNoChildren)
	}
	output, err := run(ctx, p.Name, p.Flow, p.Input)
	if err != nil {
		return nil, err
	}
	return json.Marshal(output)
}
