package collation

import (
	"strconv"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Response codes (E11).
const (
	CodeOK          = 200
	CodeTimeout     = 408
	CodeInterrupted = 410
	CodeInternal    = 500
)

// ReasonExpression marks an entry whose activity failed by an expression of
// its transitions: its result is that error, not the response beside it
// (E11).
const ReasonExpression = "expression"

// ResultOf reads the result of an activity out of the entry that holds it
// (J7): the input of a created entry, otherwise its terminal response.
func ResultOf(e *journal.Entry) *flow.Result {
	switch {
	case e.Trouble != nil && e.Trouble.Reason == ReasonExpression:
		f := &journal.Failure{Class: ReasonExpression, Message: e.Trouble.Message}
		return &flow.Result{Ran: true, Code: CodeInternal, Error: ErrorJSON(CodeInternal, f)}
	case e.Kind == journal.KindCreated:
		return &flow.Result{Ran: true, Code: CodeOK, Output: e.Input}
	case e.Response == nil:
		return &flow.Result{Ran: true, Code: CodeOK}
	}
	return responseResult(e.Response)
}

// responseResult is what expressions see of a recorded response.
func responseResult(x *journal.Response) *flow.Result {
	r := &flow.Result{Ran: true, Code: x.Code, Output: x.Output}
	if x.Error != nil {
		r.Error = ErrorJSON(x.Code, x.Error)
	}
	return r
}

// ErrorJSON is the `.error` of an activity as expressions see it: code, class,
// message and data, canonical.
func ErrorJSON(code int, f *journal.Failure) []byte {
	b := append([]byte(nil), `{"class":`...)
	b = canonical.AppendString(b, f.Class)
	b = strconv.AppendInt(append(b, `,"code":`...), int64(code), 10)
	if f.Data != nil {
		b = append(append(b, `,"data":`...), f.Data...)
	}
	b = canonical.AppendString(append(b, `,"message":`...), f.Message)
	return append(b, '}')
}
