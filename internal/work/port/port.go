package port

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/wire"
)

// MaxErrorData bounds the data of an error, in bytes of canonical JSON. Larger data is
// left out, and the message says so.
const MaxErrorData = wire.MaxFailureData

// LeftOut is the note about data of that size.
func LeftOut(size int) string {
	return fmt.Sprintf(" (its data is left out: %d bytes, the limit is %d)", size, MaxErrorData)
}

// Handler is one registered topic.
type Handler struct {
	Topic       string
	Class       effects.Class // of the body
	Concurrency int           // 0: the runtime's
	Durable     bool
	Early       bool // it may run before its cause has committed (L4)
	// Call is the handler with what is around it.
	Call func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)
	// refuses what does not fit its type; nil: it has none
	Takes func(input json.RawMessage) error
}

// Verifier is a registered verifier.
type Verifier struct {
	effects.Verifier
	Mode effects.Mode
}

// Registered returns what a *workers.Registry holds: the handlers in the order of their topics, and
// the verifiers by the names of their effects; or every mistake. Package workers sets it: a method
// would be one more that users see.
var Registered func(registry any) ([]*Handler, map[string]Verifier, error)

// RegisterBuiltins adds the built-in handlers to a *workers.Registry, as a workers.Builtins says. The
// runtime sets it: they are written with package workers.
var RegisterBuiltins func(registry, builtins any) error

// Fatal is the error that workers.Fatal makes.
type Fatal struct{ Err error }

// Error is the text of the error that was marked.
func (e *Fatal) Error() string { return e.Err.Error() }

// Unwrap gives the error that was marked.
func (e *Fatal) Unwrap() error { return e.Err }

// Retry is the error that workers.RetryAfter makes.
type Retry struct {
	Err   error
	After time.Duration
}

// Error is the text of the error that was marked.
func (e *Retry) Error() string { return e.Err.Error() }

// Unwrap gives the error that was marked.
func (e *Retry) Unwrap() error { return e.Err }

type requestKey struct{}

// WithRequest returns the context of a handler that runs for q.
func WithRequest(ctx context.Context, q *wire.Request) context.Context {
	return context.WithValue(ctx, requestKey{}, q)
}

// RequestOf is the request that ctx belongs to, nil outside a job (E14).
func RequestOf(ctx context.Context) *wire.Request {
	q, _ := ctx.Value(requestKey{}).(*wire.Request)
	return q
}

type logKey struct{}

// WithLog returns the context of a handler with the log of its runtime.
func WithLog(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, logKey{}, log)
}

// LogOf is the runtime's log, nil outside a job (E14).
func LogOf(ctx context.Context) *slog.Logger {
	log, _ := ctx.Value(logKey{}).(*slog.Logger)
	return log
}
