package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// E14: a call prints the handler's result, calls once under one key, and says how
// it ended by its exit code.
func TestCall(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	require.Equal(t, "{\"n\":1}\n", s.ok("", "call", "echo", "k", `{"n": 1}`))
	require.Equal(t, "{\"n\":1}\n", s.ok(`{"n": 1}`, "call", "echo", "k", "-"), "what is recorded")
	require.Equal(t, "{}\n", s.ok("", "call", "echo", "empty"))
	require.Contains(t, s.ok("", "ls"), "quipu_call")
	o := objects(t, s.ok("", "call", "echo", "k", `{"n":1}`, "-o", "json"))
	require.Equal(t, map[string]any{"key": "k", "state": "completed", "output": map[string]any{"n": 1.0}}, o[0])

	require.Contains(t, s.fails(codeRefused, "", "call", "echo", "k", `{"n":2}`).Err, "with another input")
	require.Contains(t, s.fails(codeRefused, "", "call", "fail", "k", `{"n":1}`).Err, "quipu_call version echo")
	require.Contains(t, s.fails(codeRefused, "", "call", "No Topic", "j").Err, "a topic is")
	require.Contains(t, s.fails(codeRefused, "", "call", "echo", "j", "{").Err, "refused input")

	declined := []string{"call", "fail", "f", `{"code": 409, "message": "declined"}`}
	require.Contains(t, s.fails(codeEnded, "", declined...).Err, "declined")
	o = objects(t, s.fails(codeEnded, "", append(declined, "-o", "json")...).Out)
	require.Equal(t, "failed", o[0]["state"])
	require.Contains(t, s.fails(codeTimeout, "", "call", "nobody.serves", "t", "--timeout", "300ms").Err, "quipu wait t")
}
