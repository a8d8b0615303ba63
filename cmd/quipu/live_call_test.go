package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// E14: a call prints the handler's result, calls once under one key, and says how
// it ended by its exit code.
func TestCall(t *testing.T) {
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
	esc := s.fails(codeEnded, "", "call", "fail", "esc", `{"code": 409, "message": "a\u001b[31mb"}`).Err
	require.Equal(t, "quipu call: job \"esc\" failed with code 409: a [31mb\n", esc)
	s.ok("", "call", "echo", "csi", `"\u009b31m"`)
	require.Contains(t, s.ok("", "wait", "csi"), `"\u009b31m"`)
	o = objects(t, s.fails(codeEnded, "", append(declined, "-o", "json")...).Out)
	require.Equal(t, "failed", o[0]["state"])
	late := s.fails(codeTimeout, "", "call", "nobody.serves", "t", "--timeout", "300ms").Err
	require.Contains(t, late, "quipu wait t")
	require.Regexp(t, "needs a handler of nobody.serves, and no process|quipu why t", late, "what it waits for")
}

// 5.3: a wait and a call say once that their job waits for a person, and go on waiting. At their
// timeout they say what it waits for.
func TestWaitsSayWhatFor(t *testing.T) {
	s := newSpace(t)
	s.deployText("closed", closed)
	s.ok("", "start", "closed", "w1")
	s.why("w1", "waits for signal gate")
	require.Contains(t, s.fails(codeTimeout, "", "wait", "w1", "--timeout", "300ms").Err,
		`job "w1" has not ended in time: gate waits for signal gate with key "w1"`)
	require.Equal(t, "timeout", objects(t, s.fails(codeTimeout, "", "wait", "w1", "--timeout", "300ms", "-o", "json").Out)[0]["state"])

	var called, waited clitest.Buffer
	codes := make(chan int, 2)
	begin := func(errs *clitest.Buffer, args ...string) {
		go func() {
			codes <- run(t.Context(), args,
				cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: errs, Getenv: clitest.Env(s.env)})
		}()
	}
	says := func(errs *clitest.Buffer, text string) {
		require.Eventually(t, func() bool { return errs.String() == text }, time.Minute, 10*time.Millisecond, text)
	}
	begin(&called, "call", "cut", "p", `{"OnRetry": "done"}`)
	says(&called, "quipu call: job \"p\" waits for a person: quipu why p\n")
	begin(&waited, "wait", "p")
	says(&waited, "quipu wait: job \"p\" waits for a person: quipu why p\n")
	require.Contains(t, s.fails(codeTimeout, "", "wait", "p", "--timeout", "300ms").Err, "has not ended in time: ")
	s.ok(s.ok("", "dead", "ls", "--ids"), "dead", "retry", "-")
	require.Zero(t, devtest.Await(t, "the end of the commands", codes))
	require.Zero(t, devtest.Await(t, "the end of the commands", codes))
	says(&called, "quipu call: job \"p\" waits for a person: quipu why p\n")
}
