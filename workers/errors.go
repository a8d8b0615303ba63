package workers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// Classes of the errors in responses, as expressions and operators see them.
const (
	ClassBusiness = "business"            // of Fail
	ClassInput    = "input"               // an input that does not fit the handler
	ClassFatal    = "fatal"               // of Fatal
	ClassError    = "error"               // any other error
	ClassPanic    = "panic"               // with its stack
	ClassTimeout  = "timeout"             // the attempt's timeout passed
	ClassTooLarge = "result_too_large"    // over wire.MaxResult
	ClassInvalid  = "result_invalid"      // a result that is no JSON, or cannot be recorded
	ClassResponse = wire.ClassResponse    // a response that breaks the wire's limits
	ClassParked   = collation.ClassParked // an effect of unknown outcome

	ClassSignal         = "signal"                      // a signal that came with the code of an error
	ClassNondeterminism = collation.ClassNondeterminism // a durable function that differs from the recorded path (E15)
	ClassUndo           = collation.ClassUndo           // a compensation that fails (3.5)

	ClassVerification = "verification"         // an effect that its verifier contradicts (3.3)
	ClassConfirm      = collation.ClassConfirm // the same, in a mode that leaves the decision to a person
	ClassMisfit       = collation.ClassMisfit  // a recorded result that its handler cannot read; parked

	ClassRefused = "refused" // of the built-in http: an address that it does not call (S14)
	ClassSecret  = "secret"  // of the built-in http: a secret that is missing, or not for that host (S14)
)

// MaxErrorData bounds the data of an error, in bytes of canonical JSON. Larger data is
// left out, and the message says so.
const MaxErrorData = wire.MaxFailureData

const (
	codeBadInput    = http.StatusBadRequest
	codeTooMany     = http.StatusTooManyRequests
	lowestErrorCode = 400
	lastErrorCode   = 599
)

// Error is a business error as Fail makes it.
type Error struct {
	Code    int    // 400…599
	Class   string // ClassBusiness unless said otherwise
	Message string
	Data    json.RawMessage // canonical, nil for none
}

// Error gives code and message.
func (e *Error) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Message) }

// terminalCode tells business errors, which end the activity, from the codes of
// a failed attempt: 408, 429 and 5xx (E8).
func terminalCode(code int) bool {
	return code < collation.CodeInternal && code != collation.CodeTimeout && code != codeTooMany
}

// FailOption adds to an Error.
type FailOption func(*Error)

// Data adds a value that marshals to JSON, at most MaxErrorData bytes; flows read
// it as `.error.data`.
func Data(v any) FailOption {
	return func(e *Error) {
		var raw []byte
		var err error
		panicked, ok := usercode.Try(func() { raw, err = canonical.Marshal(v) })
		switch {
		case !ok:
			e.Message += " (its data is left out: it panicked: " + panicked + ")"
		case err != nil:
			e.Message += " (its data is left out: " + usercode.Text(err) + ")"
		case len(raw) > MaxErrorData:
			e.Message += leftOut(len(raw))
		default:
			e.Data = raw
		}
	}
}

// Fail is a business error: the activity ends with code and message, on which the flow
// can branch. Codes 408, 429 and 5xx are a failed attempt instead: the activity's policy
// repeats it, and the last one is terminal (E8, E11). A code outside 400…599 becomes 500.
func Fail(code int, message string, options ...FailOption) error {
	e := &Error{Code: code, Class: ClassBusiness, Message: message}
	if code < lowestErrorCode || code > lastErrorCode {
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
	return &fatalError{err}
}

type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

// RetryAfter marks err as a failed attempt, and the next one comes after d instead of the
// policy's backoff (E8). It overrides the code of a Fail within err. RetryAfter(d, nil)
// is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryError{err: err, after: max(d, 0)}
}

type retryError struct {
	err   error
	after time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// refusal is how an effect records the first error of the chain that says so (E5): a terminal
// business error, and what Fatal has marked, is a result; what RetryAfter has marked is none. Code,
// class and data are those of the business error within, if there is one.
func refusal(chain []error) (code int, failure journal.Failure, final, ok bool) {
	for i := range chain {
		one, f := chain[i:i+1], wire.Failure{Class: ClassError}
		business, is := usercode.As[*Error](one)
		fatal, ends := usercode.As[*fatalError](one)
		retry, comesAgain := usercode.As[*retryError](one)
		switch {
		case is:
			f.Message = business.Message
		case ends:
			f.Class, f.Message = ClassFatal, usercode.Text(fatal.err)
		case comesAgain:
			f.Message = usercode.Text(retry.err)
		default:
			continue
		}
		code = collation.CodeInternal
		if e, within := usercode.As[*Error](chain[i:]); within {
			code, f.Class, f.Data = e.Code, e.Class, e.Data
		}
		code = fitFailure(&f, code)
		return code, journal.Failure{Class: f.Class, Message: f.Message, Data: f.Data}, ends || is && terminalCode(code), true
	}
	return 0, failure, false, false
}

func invalidResult(topic string, err error) error {
	return Fatal(&Error{Code: collation.CodeInternal, Class: ClassInvalid, Message: fmt.Sprintf("the result of %s cannot be recorded: %v", topic, err)})
}
