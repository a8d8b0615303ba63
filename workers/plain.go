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
	errNoSignals  = errors.New("outside a job no signals come: give the function some with quiputest.WithSignals")
	errNoChildren = errors.New("outside a job there are no children: give the function some with quiputest.WithChildren")
)

func plainAwait(ctx context.Context, a awaiting, timeout time.Duration) ([]byte, error) {
	source := durable.SignalsOf(ctx)
	if source == nil {
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
	run := durable.ChildrenOf(ctx)
	if run == nil {
		return nil, fmt.Errorf("child %q: %w", p.Name, errNoChildren)
	}
	output, err := run(ctx, p.Name, p.Flow, p.Input)
	if err != nil {
		return nil, err
	}
	return json.Marshal(output)
}
