package replay

import (
	"fmt"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// Codes of results (E11), and of the signal that keeps a repeating hook open (1.11).
const (
	codeOK       = 200
	codePass     = 202
	codeInternal = 500
)

// reasonExpression is the reason and the class of the error of an expression that failed (E11).
const reasonExpression = "expression"

// Why a row is held (C16).
const (
	heldStuck    = "stuck"
	heldParked   = "parked"
	heldParallel = "parallel"
)

// actionRepair is the operator action that makes the tables of a job right (S11).
const actionRepair = "repair"

// maxElementBytes bounds the inputs of all elements of one `each`.
const maxElementBytes = 32 << 20

// resultOf reads the result of an activity from the entry that holds it (J7): what the engine made
// of it, the error of an expression behind it (E11), what the message brought, or the input of the
// job. An activity whose entry tells none of these has succeeded without an output.
func resultOf(e *journal.Entry) *flow.Result {
	r := &flow.Result{Ran: true, Code: codeOK}
	switch x := e.Result; {
	case x != nil:
		r.Code, r.Output, r.By, r.Taken = x.Code, x.Output, string(x.By), x.Taken != nil
	case failedExpression(e):
		r.Code = codeInternal
	case e.Kind == journal.KindCreated:
		r.Output = e.Input
	case e.Response != nil:
		return broughtBy(e.Response)
	}
	r.Error = errorText(r.Code, failureOf(e))
	return r
}

// broughtBy is the result that a response brings.
func broughtBy(x *journal.Response) *flow.Result {
	return &flow.Result{
		Ran: true, Code: x.Code, Output: x.Output, Error: errorText(x.Code, x.Error), By: string(x.By),
		Taken: x.Taken != nil,
	}
}

// failureOf reads the error of the result that resultOf reads; nil: it has none.
func failureOf(e *journal.Entry) *journal.Failure {
	switch {
	case e.Result != nil:
		return e.Result.Error
	case failedExpression(e):
		return &journal.Failure{Class: reasonExpression, Message: e.Trouble.Message}
	case e.Kind != journal.KindCreated && e.Response != nil:
		return e.Response.Error
	}
	return nil
}

// errorText is the error as expressions see it: canonical JSON, nil for none.
func errorText(code int, f *journal.Failure) []byte {
	if f == nil {
		return nil
	}
	data := ""
	if f.Data != nil {
		data = fmt.Sprintf(`"data":%s,`, f.Data)
	}
	return fmt.Appendf(nil, `{"class":%s,"code":%d,%s"message":%s}`,
		canonical.AppendString(nil, f.Class), code, data, canonical.AppendString(nil, f.Message))
}
