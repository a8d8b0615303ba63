package inspect

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// call is an effect on the chain of one request.
type call struct {
	chain journal.GUID
	key   journal.Digest
}

// verdict is what a person said of an effect, and when. Its outcome has the same time.
type verdict struct {
	key journal.Digest
	at  int64
}

// effect describes an entry of an effect chain.
func (t *teller) effect(ev *view.Event, e *journal.Entry) {
	f := e.Effect
	compensation, undoes := strings.CutPrefix(f.Name, "undo:")
	name := "effect " + f.Name
	if undoes {
		name = "compensation " + compensation
	}
	switch started := e.Kind == journal.KindEffectStarted; {
	case started && f.Class == "undo":
		ev.Text = name + " is registered"
	case started:
		ev.Text = name + " begins, " + f.Class
	case e.Kind == journal.KindEffectFailed:
		ev.Text = name + " was not done" + t.says(e)
	case f.Name == "undo":
		code, failure := cause(f.Result)
		ev.Text, ev.Error = fmt.Sprintf("failed with code %d: begins to compensate", code), failure
	case f.Error != nil:
		ev.Text = name + " is done: its outcome is an error"
	default:
		ev.Text = name + " is done" + t.says(e)
	}
	if e.Kind == journal.KindEffectStarted {
		t.begun[call{e.Chain, f.Key}] = f
	}
	if f.Late {
		ev.Text += ", recorded late"
	}
	if f.Taken != nil {
		ev.Text += takenOver(f.Taken)
	}
	if f.Result != nil && f.Error == nil && f.Name != "undo" {
		ev.Output = &view.Value{JSON: f.Result}
	}
	if f.Error != nil {
		ev.Error = view.FailureOf(f.Error)
	}
}

// cause reads the error for which a function is undone: the response that it would have given.
func cause(result []byte) (code int, failure *view.Failure) {
	var r struct {
		Code  int
		Error *struct {
			Class, Message, Stack string
			Data                  json.RawMessage
		}
	}
	if err := json.Unmarshal(result, &r); err != nil || r.Error == nil {
		return 0, nil
	}
	return r.Code,
		&view.Failure{Class: r.Error.Class, Message: r.Error.Message, Data: r.Error.Data, Stack: r.Error.Stack}
}

// says tells who says what the outcome of an effect is, if it is not the call itself: a person, a
// verifier (3.3), or the run that called it again.
func (t *teller) says(e *journal.Entry) string {
	f := e.Effect
	if who, judged := t.judged[verdict{f.Key, e.Time}]; judged {
		if who == "" {
			who = "a person"
		}
		return ", says " + who
	}
	began := t.begun[call{e.Chain, f.Key}]
	switch {
	case f.Finding != nil:
		return ", " + found(f.Finding)
	case began == nil || f.Taken != nil:
	case began.Class == "idempotent" && f.Fence > began.Fence && e.Writer != "":
		return ", taken over by " + e.Writer
	}
	return ""
}

// found tells who found the outcome of an effect, and why he was asked.
func found(f *journal.Finding) string {
	why := "its call was cut off"
	if f.Error != "" {
		why = "its call failed: " + strings.TrimSuffix(f.Error, ".")
	}
	note := ""
	if f.Note != "" {
		note = " (" + f.Note + ")"
	}
	return fmt.Sprintf("says its verifier %s%s; %s", f.Verifier, note, why)
}
