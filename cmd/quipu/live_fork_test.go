package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// A fork goes on from an entry; log and show of both jobs say so.
func TestForkCommand(t *testing.T) {
	s := newSpace(t)
	s.deploy("hello", "1", "echo", `{a: 1}`)
	s.ok("", "start", "hello", "h-1", "--input", `{"name":"Ada"}`)
	s.ok("", "wait", "h-1", "--timeout", "1m")
	require.Contains(t, s.ok("", "fork", "h-1", "--at", "1", "--as", "h-2", "--reason", "once more"), "h-2 goes on from entry 1 of h-1 as job ")
	s.ok("", "wait", "h-2", "--timeout", "1m")
	last := objects(t, s.ok("", "show", "h-1", "-o", "json"))[0]["entries"].(float64) - 1
	r := objects(t, s.ok("", "fork", "h-1", "--at", fmt.Sprint(last), "--as", "h-3", "-o", "json"))[0]
	require.Equal(t, "h-1", r["fork_of"])
	require.Equal(t, "h-3  completed  {\"text\":{\"a\":1}}\n", s.ok("", "wait", "h-3", "--timeout", "1m"))

	s.inOrder(s.ok("", "log", "h-1"), "the job completed", "ada (login quipu): fork (once more), from an earlier entry, as job h-2")
	s.inOrder(s.ok("", "log", "h-2"), "it goes on from entry 1 of another job; decided by ada", "h-1", "sent to echo")
	s.inOrder(s.ok("", "log", "h-3"), "step  done, taken over from entry ", "of the job that it was forked from")
	require.Contains(t, s.ok("", "show", "h-3"), "fork     of entry ")
	require.NotContains(t, s.ok("", "why", "h-3"), "resume")

	require.Contains(t, s.fails(codeRefused, "", "fork", "h-1", "--at", "99", "--as", "h-4").Err, "its journal has the entries 1 to")
	require.Contains(t, s.fails(codeRefused, "", "fork", "h-1", "--at", "1", "--as", "h-2").Err, "take another one")
	require.Contains(t, s.fails(codeRefused, "", "fork", "h-3", "--at", "1", "--as", "h-4").Err, "fork the first one")
	s.fails(codeNotFound, "", "fork", "h-9", "--at", "1", "--as", "h-4")
	s.fails(cli.CodeUsage, "", "fork", "h-1", "--as", "h-4")
	s.fails(cli.CodeUsage, "", "fork", "h-1", "--at", "1")
}
