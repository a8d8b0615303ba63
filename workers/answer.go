package workers

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/durable"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/wire"
)

// ErrTimeout is the cause of a context that ended with the attempt's timeout (E9).
var ErrTimeout = fmt.Errorf("the timeout of the attempt passed: %w", context.DeadlineExceeded)

// success is the response with an output. An output that cannot be recorded becomes an
// error response (E6).
func success(topic string, out []byte) *wire.Response {
	if out == nil {
		out = []byte("null")
	}
	raw, err := canonical.Payload(out)
	if err != nil {
		return failure(invalidResult(topic, err), false)
	}
	if len(raw) > wire.MaxResult {
		return refused(collation.CodeInternal, ClassTooLarge,
			fmt.Sprintf("the result of %s has %d bytes, the limit is %d: return a reference to it", topic, len(raw), wire.MaxResult))
	}
	return &wire.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: raw}
}

func refused(code int, class, message string) *wire.Response {
	return &wire.Response{Kind: journal.ResponseTerminal, Code: code, Error: &wire.Failure{Class: class, Message: message}}
}

// failure is the response to an error of a handler (E8, E11). timedOut says that
// the attempt's timeout passed.
func failure(err error, timedOut bool) *wire.Response {
	if r := doubtful(err); r != nil {
		return r
	}
	code, e := describe(err, timedOut)
	r := &wire.Response{Kind: journal.ResponseFailedAttempt, Code: code, Error: e}
	var (
		recorded *effects.RecordedError
		fatal    *fatalError
		retry    *retryError
		business *Error
		failed   *effects.FailedError

		recordedFact fact
	)
	switch {
	case errors.As(err, &fatal):
		r.Kind = journal.ResponseTerminal
	case errors.As(err, &retry), errors.As(err, &failed) && errors.As(failed.Cause, &retry):
		r.RetryAfterMS = retry.after.Milliseconds()
	case errors.As(err, &recorded):
		r.Kind = journal.ResponseTerminal // every further attempt would replay it
	case errors.As(err, &recordedFact):
		r.Kind = journal.ResponseTerminal // as well
	case errors.As(err, &business) && terminalCode(business.Code):
		r.Kind = journal.ResponseTerminal
	}
	return r
}

// describe gives the code of an error and how it is recorded. What the error says about
// itself has precedence over what the run knows, such as a timeout.
func describe(err error, timedOut bool) (int, *wire.Failure) {
	f := &wire.Failure{Class: ClassError, Message: err.Error()}
	code := collation.CodeInternal
	var (
		recorded *effects.RecordedError
		business *Error
		panicked *durable.PanicError
		fatal    *fatalError

		recordedFact fact
	)
	switch {
	case errors.As(err, &recordedFact):
		var e journal.Failure
		code, e = recordedFact.fact()
		f.Class, f.Message = e.Class, e.Message
		if len(e.Data) <= MaxErrorData {
			f.Data = e.Data
		}
	case errors.As(err, &recorded):
		code = recorded.Code
		f.Class, f.Message = recorded.Failure.Class, recorded.Failure.Message
		f.Data, f.Stack = recorded.Failure.Data, recorded.Failure.Stack
	case errors.As(err, &business):
		code, f.Class, f.Message, f.Data = business.Code, business.Class, business.Message, business.Data
	case errors.As(err, &panicked):
		f.Class, f.Stack = ClassPanic, string(panicked.Stack)
	case errors.As(err, &fatal):
		f.Class = ClassFatal
	case timedOut:
		code, f.Class = collation.CodeTimeout, ClassTimeout
	}
	f.Message, f.Stack = wire.CutText(f.Message), wire.CutText(f.Stack)
	return code, f
}

// overruled is the response where the effects and the handler disagree. An attempt whose
// effect has no known outcome has failed, even when the handler hides the error; only an
// explicit Fatal still ends the activity (E5). An effect that is parked, or that its
// verifier does not confirm, overrules whatever the handler says (3.3).
func overruled(r *wire.Response, err, verdict error, timedOut bool) *wire.Response {
	var fatal *fatalError
	doubt := doubtful(verdict)
	switch {
	case verdict == nil:
		return r
	case doubt != nil:
		return doubt
	case r.Kind == journal.ResponseTerminal && !errors.As(err, &fatal):
		return failure(verdict, timedOut)
	}
	return r
}
