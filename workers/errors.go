package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
)

// Causes of the context of a handler that has to stop.
var (
	// ErrTimeout: the attempt's timeout passed (E9).
	ErrTimeout = fmt.Errorf("the timeout of the attempt passed: %w", context.DeadlineExceeded)
	// ErrDraining: the process goes down; the request is handed back (T10).
	ErrDraining = errors.New("the worker is draining: the request is handed back")
	// ErrUncommitted: the transaction that caused the run of an Early handler did not commit; what the
	// run brings is dropped (L6).
	ErrUncommitted = early.ErrUncommitted
)

// Error is a business error as Fail makes it.
type Error struct {
	Code    int    // 400…599
	Class   string // "business" unless said otherwise
	Message string
	Data    json.RawMessage // canonical, nil for none
}

// Error gives code and message.
func (e *Error) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Message) }

// Data adds to a Fail a value that marshals to JSON, at most 64 KiB; flows read
// it as `.error.data`.
func Data(v any) func(*Error) {
	return func(e *Error) {
		var raw []byte
		var err error
		panicked, ok := usercode.Try(func() { raw, err = canonical.Marshal(v) })
		switch {
		case !ok:
			e.Message += " (its data is left out: it panicked: " + panicked + ")"
		case err != nil:
			e.Message += " (its data is left out: " + usercode.Text(err) + ")"
		case len(raw) > port.MaxErrorData:
			e.Message += port.LeftOut(len(raw))
		default:
			e.Data = raw
		}
	}
}

// Fail is a business error: the activity ends with code and message, on which the flow
// can branch. Codes 408, 429 and 5xx are a failed attempt instead: the activity's policy
// repeats it, and the last one is terminal (E8, E11). A code outside 400…599 becomes 500.
func Fail(code int, message string, options ...func(*Error)) error {
	e := &Error{Code: code, Class: wire.ClassBusiness, Message: message}
	if !wire.IsErrorCode(code) {
		e.Code = collation.CodeInternal
		e.Message = fmt.Sprintf("%s (code %d is outside 400…599)", message, code)
	}
	for _, o := range options {
		o(e)
	}
	return e
}

// Fatal marks err as terminal: no further attempt, whatever the policy says (E8). The
// code is that of a Fail within err, else 500. Fatal(nil) is nil.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &port.Fatal{Err: err}
}

// RetryAfter marks err as a failed attempt, and the next one comes after d instead of the
// policy's backoff (E8). It overrides the code of a Fail within err. RetryAfter(d, nil)
// is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &port.Retry{Err: err, After: max(d, 0)}
}

func invalidResult(topic string, err error) error {
	return Fatal(&Error{Code: collation.CodeInternal, Class: wire.ClassInvalid, Message: fmt.Sprintf("the result of %s cannot be recorded: %v", topic, err)})
}
