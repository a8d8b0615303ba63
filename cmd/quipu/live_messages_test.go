package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// The messages of a job with their ledgers: now, at an entry, and one with its causes (J10).
func TestMessagesCommand(t *testing.T) {
	s := newSpace(t)
	s.deploy("hello", "1", "echo", `{a: 1}`)
	s.ok("", "start", "hello", "m-1", "--input", `{"name":"Ada"}`)
	s.ok("", "wait", "m-1", "--timeout", "1m")
	out := s.ok("", "messages", "m-1")
	s.inOrder(out, "SENT", "start", "leg1", "request", "answered", "response", "000 1 1 1 1 00000001", "handled")
	all := objects(t, s.ok("", "messages", "m-1", "-o", "json"))
	require.Len(t, all, 4)
	for _, m := range all {
		require.NotEmpty(t, m["verdict"], "nothing of a job that has ended is open")
	}
	answer := all[len(all)-1]
	require.Equal(t, "000111100000001", answer["ledger"])
	require.Equal(t, "it closed the job, and the completion tasks are done", answer["says"])
	require.Equal(t, all[2]["guid"], answer["caused_by"])

	early := s.ok("", "messages", "m-1", "--at", "2")
	s.inOrder(early, "leg1", "request", "open")
	require.NotContains(t, early, "response")

	one := s.ok("", "messages", "m-1", "--guid", all[2]["guid"].(string)[:8])
	s.inOrder(one, "request "+all[2]["guid"].(string)+" of step", "cause     leg1 of step", "caused    response of step")
	require.Equal(t, 1, strings.Count(one, "caused "))

	require.Contains(t, s.fails(codeNotFound, "", "messages", "m-1", "--at", "99").Err, "no such entry")
	require.Contains(t, s.fails(codeNotFound, "", "messages", "m-1", "--guid", "zz").Err, `begins with "zz"`)
	s.fails(codeNotFound, "", "messages", "m-9")
	s.fails(cli.CodeUsage, "", "messages", "m-1", "--at", "-1")
}
