package wire

import (
	"bytes"
	"encoding/json"

	"github.com/quipu-journal/quipu/journal"
)

// DecodeAddress reads where a message to the engine belongs, although the message breaks a rule: it
// takes the members that it can read, up to the first that is no JSON. It reads no response. What
// it returns is a claim, for Refused.
func DecodeAddress(b []byte) *Hint {
	h := &Hint{}
	to := map[string]any{
		"kind": &h.Kind, "job": &h.Job, "row": &h.Row, "activity": &h.Activity, "dad": &h.DAD, "turn": &h.Turn,
		"flow": &h.Flow, "version": &h.Version,
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return h
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return h
		}
		key, _ := name.(string)
		if to[key] == nil {
			to[key] = new(json.RawMessage)
		}
		if err := d.Decode(to[key]); err != nil {
			return h
		}
	}
	return h
}

// Refused is the failed attempt that stands for a response that cannot be read (E8). The worker has
// done what it did, and its policy says whether it does so again; the message says what was wrong.
func Refused(topic string, why error) *Response {
	return &Response{
		Kind: journal.ResponseFailedAttempt, Code: codeRefused,
		Error: &Failure{Class: ClassResponse, Message: CutText("the engine refused the response of topic " + topic + ": " + why.Error())},
	}
}

// codeRefused is that of a gateway that cannot read what is behind it.
const codeRefused = 502
