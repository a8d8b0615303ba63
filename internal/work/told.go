package work

import (
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// told is what an error says that ended a run, or an effect of it. It is read once, in the run, and
// fits a response. Behind the run nothing has the error itself: each of its methods is code of a
// user, and may panic, hang, or return 100 MB.
type told struct {
	text  string
	own   error          // an error of the runtime within it, by which the run is handed back or parked; nil: none
	doubt *wire.Response // where a person has to decide, or a verifier has; nil: neither

	kind    journal.ResponseKind
	code    int
	failure wire.Failure
	retryMS int64 // until the next attempt; 0: by the policy
	fatal   bool
	itself  bool // the error says what it is, also when the attempt's timeout has passed
}

// Error is the text of the error.
func (t *told) Error() string { return t.text }

// Unwrap is the error of the runtime within it.
func (t *told) Unwrap() error { return t.own }

// toldOf reads an error, once. Nil is nil.
func toldOf(err error) *told {
	if err == nil {
		return nil
	}
	if t, read := err.(*told); read {
		return t
	}
	chain := usercode.Chain(err)
	t := &told{
		text: wire.CutText(usercode.Text(err)), kind: journal.ResponseFailedAttempt, code: collation.CodeInternal,
		doubt: doubtful(chain), own: ownOf(chain),
	}
	t.failure = wire.Failure{Class: wire.ClassError, Message: t.text}
	t.describe(chain)
	t.decide(chain)
	return t
}

// readError is toldOf for whoever has an error in hand: nil stays nil.
func readError(err error) error {
	if err == nil {
		return nil
	}
	return toldOf(err)
}

// ownOf is the error by which the runtime hands a run back, or parks it.
func ownOf(chain []error) error {
	if trouble, ok := usercode.As[*effect.StoreError](chain); ok {
		return trouble
	}
	if usercode.Is(chain, effect.ErrBusy) {
		return effect.ErrBusy
	}
	if differs, ok := usercode.As[*effects.NondeterminismError](chain); ok {
		return differs
	}
	return nil
}

// describe gives code, class, message and data. What the error says about itself has precedence
// over what the run knows, such as a timeout.
func (t *told) describe(chain []error) {
	t.itself = true
	f := &t.failure
	if code, e, ok := recordedFact(chain); ok {
		t.code, f.Class, f.Message, f.Data = code, e.Class, e.Message, e.Data
	} else if recorded, ok := usercode.As[*effects.RecordedError](chain); ok {
		t.code, f.Class, f.Message = recorded.Code, recorded.Failure.Class, recorded.Failure.Message
		f.Data, f.Stack = recorded.Failure.Data, recorded.Failure.Stack
	} else if business, ok := usercode.As[*workers.Error](chain); ok {
		t.code, f.Class, f.Message, f.Data = business.Code, business.Class, business.Message, business.Data
	} else if panicked, ok := usercode.As[*durable.PanicError](chain); ok {
		f.Class, f.Stack = wire.ClassPanic, string(panicked.Stack)
	} else if _, ok := usercode.As[*port.Fatal](chain); ok {
		f.Class = wire.ClassFatal
	} else {
		t.itself = false
	}
	t.code = fitFailure(f, t.code)
}

// recordedFact is the error as it is recorded, if it is one, or has one within: every further attempt
// would get it again, so it ends the activity when the function returns it.
func recordedFact(chain []error) (code int, f journal.Failure, ok bool) {
	if usercode.Is(chain, workers.ErrAwaitTimeout) {
		return collation.CodeTimeout,
			journal.Failure{Class: wire.ClassTimeout, Message: workers.ErrAwaitTimeout.Error()}, true
	}
	if e, is := usercode.As[*workers.SignalError](chain); is {
		return e.Code, journal.Failure{Class: wire.ClassSignal, Message: e.Error(), Data: e.Payload}, true
	}
	if e, is := usercode.As[*workers.ChildError](chain); is {
		return e.Code, journal.Failure{Class: e.Class, Message: e.Error(), Data: e.Data}, true
	}
	return 0, f, false
}

// fitFailure makes the failure one that the wire takes, and says in its message what was left out
// or changed. It returns the code, within 400…599.
func fitFailure(f *wire.Failure, code int) int {
	note := ""
	if !wire.IsErrorCode(code) {
		note = fmt.Sprintf(" (code %d is outside 400…599)", code)
		code = collation.CodeInternal
	}
	if f.Data != nil {
		data, err := canonical.Payload(f.Data)
		switch {
		case err != nil:
			note += fmt.Sprintf(" (its data is left out: %v)", err)
			data = nil
		case len(data) > port.MaxErrorData:
			note += port.LeftOut(len(data))
			data = nil
		}
		f.Data = data
	}
	if f.Class == "" {
		f.Class = wire.ClassBusiness
	}
	f.Class, f.Message, f.Stack = wire.CutText(f.Class), noted(f.Message, note), wire.CutText(f.Stack)
	return code
}

// noted is a message with a note, which stays when the message is cut.
func noted(message, note string) string {
	const longest = 512
	message, note = wire.CutText(message), wire.CutTextTo(note, longest)
	if over := len(message) + len(note) - wire.MaxText; over > 0 {
		message = wire.CutTextTo(message, len(message)-over)
	}
	return message + note
}

// decide says what follows from the error (E8, E11).
func (t *told) decide(chain []error) {
	failed, again := usercode.As[*effects.FailedError](chain)
	retry, asks := usercode.As[*port.Retry](chain)
	if again && !asks {
		retry, asks = usercode.As[*port.Retry](usercode.Chain(failed.Cause))
	}
	_, t.fatal = usercode.As[*port.Fatal](chain)
	_, recorded := usercode.As[*effects.RecordedError](chain)
	_, _, isFact := recordedFact(chain)
	_, business := usercode.As[*workers.Error](chain)
	switch {
	case t.fatal:
		t.kind = journal.ResponseTerminal
	case asks:
		t.waits(retry.After)
	case recorded, isFact: // every further attempt would get it again
		t.kind = journal.ResponseTerminal
	case business && wire.EndsActivity(t.code):
		t.kind = journal.ResponseTerminal
	}
}

// waits asks for the next attempt after that time.
func (t *told) waits(after time.Duration) {
	const most = time.Duration(wire.MaxRetryAfterMS) * time.Millisecond
	if after > most {
		t.failure.Message = noted(t.failure.Message, fmt.Sprintf(" (the next attempt was asked for after %s: it comes after %s, the limit)", after, most))
		after = most
	}
	t.retryMS = (max(after, 0) + time.Millisecond - 1).Milliseconds() // rounded up: 0 is the policy's backoff
}

// response is the response to the error. timedOut says that the attempt's timeout has passed.
func (t *told) response(timedOut bool) *wire.Response {
	if t.doubt != nil {
		return t.doubt
	}
	f := t.failure
	r := &wire.Response{Kind: t.kind, Code: t.code, Error: &f, RetryAfterMS: t.retryMS}
	if timedOut && !t.itself {
		r.Code, f.Class = collation.CodeTimeout, wire.ClassTimeout
	}
	return r
}

// refusal is how an effect records the first error of the chain that says so (E5): a terminal
// business error, and what Fatal has marked, is a result; what RetryAfter has marked is none. Code,
// class and data are those of the business error within, if there is one.
func refusal(chain []error) (code int, failure journal.Failure, final, ok bool) {
	for i := range chain {
		one, f := chain[i:i+1], wire.Failure{Class: wire.ClassError}
		business, is := usercode.As[*workers.Error](one)
		fatal, ends := usercode.As[*port.Fatal](one)
		retry, comesAgain := usercode.As[*port.Retry](one)
		switch {
		case is:
			f.Message = business.Message
		case ends:
			f.Class, f.Message = wire.ClassFatal, usercode.Text(fatal.Err)
		case comesAgain:
			f.Message = usercode.Text(retry.Err)
		default:
			continue
		}
		code = collation.CodeInternal
		if e, within := usercode.As[*workers.Error](chain[i:]); within {
			code, f.Class, f.Data = e.Code, e.Class, e.Data
		}
		code = fitFailure(&f, code)
		return code, journal.Failure{Class: f.Class, Message: f.Message, Data: f.Data},
			ends || is && wire.EndsActivity(code), true
	}
	return 0, failure, false, false
}
