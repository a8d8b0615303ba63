package wire

import (
	"net/http"

	"github.com/quipu-journal/quipu/collation"
)

// Classes of the errors in responses, as expressions and operators see them.
const (
	ClassBusiness = "business"            // of workers.Fail
	ClassInput    = "input"               // an input that does not fit the handler
	ClassFatal    = "fatal"               // of workers.Fatal
	ClassError    = "error"               // any other error
	ClassPanic    = "panic"               // with its stack
	ClassTimeout  = "timeout"             // the attempt's timeout passed
	ClassTooLarge = "result_too_large"    // over MaxResult
	ClassInvalid  = "result_invalid"      // a result that is no JSON, or cannot be recorded
	ClassResponse = "response_invalid"    // a response that breaks the limits of the wire
	ClassParked   = collation.ClassParked // an effect of unknown outcome

	ClassSignal         = "signal"                      // a signal that came with the code of an error
	ClassNondeterminism = collation.ClassNondeterminism // a durable function that differs from the recorded path (E15)
	ClassUndo           = collation.ClassUndo           // a compensation that fails (3.5)

	ClassVerification = "verification"         // an effect that its verifier contradicts (3.3)
	ClassConfirm      = collation.ClassConfirm // the same, in a mode that leaves the decision to a person
	ClassMisfit       = collation.ClassMisfit  // a recorded result that its handler cannot read; parked

	ClassHTTP    = "http"    // of the built-in http: an error status that a receiver answered with
	ClassRefused = "refused" // of the built-in http: an address that it does not call (S14)
	ClassSecret  = "secret"  // of the built-in http: a secret that is missing, or not for that host (S14)
)

// LowestErrorCode and LastErrorCode bound the code of an error (E11).
const (
	LowestErrorCode = 400
	LastErrorCode   = 599
)

// IsErrorCode reports whether code can be that of an error (E11).
func IsErrorCode(code int) bool { return code >= LowestErrorCode && code <= LastErrorCode }

// EndsActivity tells the codes of business errors, which end the activity, from those of a failed
// attempt: 408, 429 and 5xx (E8).
func EndsActivity(code int) bool {
	return code < collation.CodeInternal && code != collation.CodeTimeout && code != http.StatusTooManyRequests
}
