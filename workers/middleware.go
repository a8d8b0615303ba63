package workers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
)

// Handler is a handler as its requests see it: JSON in, JSON out, nil for null.
type Handler func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)

// Use wraps all handlers of the registry, also those that are registered later: for
// logs, metrics, credentials, limits. What is added first is outermost. Info and Logger
// tell it which call it is in.
//
// It runs with every run of a handler, so again after a crash and, around a durable
// function, with each of its turns: a turn that suspends does not return from next, but
// what it deferred runs. There it must not change the input or the order of calls from
// one turn to the next (E15). An effect of its own is one of the handler's, and needs a
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

// wrapped is a body within what the registry uses.
func (h *handler) wrapped(body Handler) Handler {
	for _, use := range slices.Backward(h.uses) {
		body = use(body)
	}
	return body
}

type loggerKey struct{}

// Logger is the runtime's log for the handler run that ctx belongs to: it has the topic,
// the job's key and id, the activity with its address, the turn and the attempt. Outside a
// job it is slog.Default(). A durable function logs a line again in each turn that passes
// it.
func Logger(ctx context.Context) *slog.Logger {
	base, _ := ctx.Value(loggerKey{}).(*slog.Logger)
	if base == nil {
		return slog.Default()
	}
	c := Info(ctx)
	return base.With("topic", c.Topic, "job", c.Key, "id", c.Job, "activity", c.Activity, "address", c.DAD, "turn", c.Turn, "attempt", c.Attempt)
}
