package collation

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// Response codes: 200 is success, all others are errors for transitions (E11).
const (
	CodeOK          = 200
	CodeNotFound    = 404
	CodeTimeout     = 408
	CodeInterrupted = 410
	CodeInternal    = 500
)

// ReasonExpression marks an entry whose activity failed by an expression of its transitions.
// The activity's result is then that error, not the response in the entry (E11).
const ReasonExpression = "expression"

// ResultOf reads the result of an activity out of the entry that holds it (J7): the result that
// the engine made, the input of a created entry, or else the terminal response.
func ResultOf(e *journal.Entry) *flow.Result {
	switch {
	case e.Result != nil:
		r := &flow.Result{
			Ran: true, Code: e.Result.Code, Output: e.Result.Output, By: string(e.Result.By),
			Taken: e.Result.Taken != nil,
		}
		if e.Result.Error != nil {
			r.Error = ErrorJSON(r.Code, e.Result.Error)
		}
		return r
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

// responseResult is a recorded response as expressions see it.
func responseResult(x *journal.Response) *flow.Result {
	r := &flow.Result{Ran: true, Code: x.Code, Output: x.Output, By: string(x.By), Taken: x.Taken != nil}
	if x.Error != nil {
		r.Error = ErrorJSON(x.Code, x.Error)
	}
	return r
}

// FailureOf reads an error back out of its ErrorJSON.
func FailureOf(text []byte) *journal.Failure {
	var e struct {
		Class, Message string
		Data           json.RawMessage
	}
	if json.Unmarshal(text, &e) != nil {
		return &journal.Failure{Class: "error"}
	}
	return &journal.Failure{Class: e.Class, Message: e.Message, Data: e.Data}
}

// ErrorJSON is the `.error` of an activity as expressions see it, in canonical JSON: class,
// code, data, message.
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

// errorAnswer is the body of an answer with an error that the engine made.
func errorAnswer(code int, class, message string) []byte {
	return journal.EncodeResponse(&journal.Response{
		Kind: journal.ResponseTerminal, Code: code, Error: &journal.Failure{Class: class, Message: message},
	})
}

// expressionAnswer is the error response 500 for a failed expression (E11).
func expressionAnswer(err error) []byte {
	return errorAnswer(CodeInternal, ReasonExpression, short(err))
}

// maxMessage bounds the text of an error that the engine records, in bytes.
const maxMessage = 4 << 10

func short(err error) string {
	s := err.Error()
	if len(s) > maxMessage {
		s = s[:maxMessage]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}
