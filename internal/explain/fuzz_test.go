package explain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// FuzzRowBody: a row is explained whatever its body contains, so that nobody who asks why
// a job stands still gets no answer.
func FuzzRowBody(f *testing.F) {
	f.Add(string(journal.MessageInterrupt), []byte(`{"code":410,"reason":"r","from":"ann"}`))
	f.Add(string(journal.MessageAnswer), journal.EncodeResponse(&journal.Response{
		Kind: journal.ResponseTerminal,
		Code: 408, Error: &journal.Failure{Class: "within"},
	}))
	f.Add(string(journal.MessageWakeUp),
		journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: 200, By: journal.ByTimer}))
	f.Add("", []byte(`{`))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		r := &collation.Row{Kind: journal.MessageKind(kind), Body: body, Activity: "a", DAD: ",0,0"}
		e := &explainer{}
		s := &spot{InstanceKey: collation.InstanceKey{Activity: "a", DAD: ",0,0"}, inst: &collation.Instance{}}
		require.NotEmpty(t, e.what(s, r))
		require.NotEmpty(t, order(r))
	})
}
