package workers

import (
	"context"
	"encoding/json"
	"errors"
)

// Handler is a handler as its requests see it: JSON in, JSON out, nil for null.
type Handler func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)

// Use wraps all handlers of the registry, also those registered later: for logs, metrics,
// credentials, limits. The first middleware is the outermost. Info and quipu.Logger tell it
// which call it is in.
//
// It runs with every run of a handler: again after a crash, and with each turn of a
// durable function. A turn that suspends does not return from next, but its deferred
// calls run. Around a durable function it must not change the input or the order of calls
// between turns (E15). An effect of its own counts as one of the handler's, and needs a
// name that no handler uses.
func (r *Registry) Use(middleware ...func(next Handler) Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range middleware {
		if m == nil {
			r.errs = append(r.errs, errors.New("a middleware is nil"))
			continue
		}
		r.uses = append(r.uses, m)
	}
}
