package journaltest

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Message returns the message of a row.
func Message(r *collation.Row) *collation.Message {
	m := &collation.Message{
		Kind: r.Kind, Job: r.Job, GUID: r.GUID, Row: r.GUID, Activity: r.Activity, DAD: r.DAD, Turn: r.Turn,
	}
	if r.Kind == journal.MessageAnswer {
		m.GUID = r.Answers()
	}
	return m
}

// Response returns a worker's response to the current turn of a request.
func Response(r *collation.Row, with *journal.Response) *collation.Message {
	return &collation.Message{
		Kind: journal.MessageResponse, Job: r.Job, GUID: collation.ResponseGUID(r.GUID, r.Turn), Row: r.GUID,
		Activity: r.Activity, DAD: r.DAD, Turn: r.Turn, Response: with,
	}
}

// Success is a response that ends an activity well.
func Success(output string) *journal.Response {
	return &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: []byte(output)}
}
