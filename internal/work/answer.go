package work

import (
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// success is the response with an output. An output that cannot be recorded becomes an
// error response (E6).
func success(topic string, out []byte) *wire.Response {
	if out == nil {
		out = []byte("null")
	}
	raw, err := canonical.Payload(out)
	if err != nil {
		return failure(workers.Fatal(&workers.Error{
			Code: collation.CodeInternal, Class: wire.ClassInvalid, Message: fmt.Sprintf("the result of %s cannot be recorded: %v", topic, err),
		}), false)
	}
	if len(raw) > wire.MaxResult {
		return refused(collation.CodeInternal, wire.ClassTooLarge,
			fmt.Sprintf("the result of %s has %d bytes, the limit is %d: return a reference to it", topic, len(raw), wire.MaxResult))
	}
	return &wire.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: raw}
}

func refused(code int, class, message string) *wire.Response {
	return &wire.Response{
		Kind: journal.ResponseTerminal, Code: code, Error: &wire.Failure{Class: class, Message: message},
	}
}

// failure is the response to an error of a handler (E8, E11). timedOut says that
// the attempt's timeout passed.
func failure(err error, timedOut bool) *wire.Response { return toldOf(err).response(timedOut) }

// sendable is the response, if the engine takes it: it is judged by the function that the engine
// decodes it with. Where that refuses it, the attempt has failed, and the response says why. So
// nothing is sent that would come back as undecodable, and have the handler run again.
func sendable(topic string, r *wire.Response) *wire.Response {
	if _, err := r.Journal(); err != nil {
		return &wire.Response{
			Kind: journal.ResponseFailedAttempt, Code: collation.CodeInternal,
			Error: &wire.Failure{Class: wire.ClassResponse, Message: wire.CutText(fmt.Sprintf("the response of %s cannot be sent: %v", topic, err))},
		}
	}
	return r
}

// overruled is the response where the effects and the handler disagree. An attempt whose
// effect has no known outcome has failed, even when the handler hides the error; only an
// explicit Fatal still ends the activity (E5). An effect that is parked, or that its
// verifier does not confirm, overrules whatever the handler says (3.3).
func overruled(r *wire.Response, err, verdict error, timedOut bool) *wire.Response {
	says, own := toldOf(verdict), toldOf(err)
	switch {
	case says == nil:
		return r
	case says.doubt != nil:
		return says.doubt
	case r.Kind == journal.ResponseTerminal && (own == nil || !own.fatal):
		return says.response(timedOut)
	}
	return r
}
