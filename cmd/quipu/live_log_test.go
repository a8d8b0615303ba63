package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// One text says what went wrong, with what input, what was done outside, and who decided.
func TestLogOfAParkedEffect_E10(t *testing.T) {
	s := newSpace(t)
	s.deploy("parks", "1", "cut", `{onretry: "${ start.output.name }"}`)
	s.ok("", "start", "parks", "p-1", "--input", `{"name":"Ada"}`)
	ids := s.dead(1)
	s.inOrder(s.ok("", "log", "p-1"),
		"job p-1, flow parks version 1, started ",
		"started: flow parks version 1", `in     {"name":"Ada"}`,
		"step  sent to cut", `in     {"onretry":"Ada"}`,
		"step  effect call begins, guarded",
		"step  waits for a person", "error  parked: effect \"call\"", "connection cut off")

	s.ok("", "dead", "done", ids["p-1"], "--result", `"seen"`, "--reason", "in the books")
	s.ok("", "wait", "p-1", "--timeout", "1m")
	s.inOrder(s.ok("", "log", "p-1"),
		"waits for a person", "step  ada (login quipu): done effect call (in the books)", "step  effect call is done", `out    "seen"`,
		"step  done (waited ", `out    "seen"`, "the job completed (took ", `out    {"text":"seen"}`)

	all := objects(t, s.ok("", "log", "p-1", "-o", "json"))
	require.Equal(t, "started", all[0]["kind"])
	require.Equal(t, map[string]any{"value": map[string]any{"name": "Ada"}}, all[0]["input"])
	last := all[len(all)-1]
	require.Equal(t, []any{"p-1", "closed", map[string]any{"value": map[string]any{"text": "seen"}}}, []any{last["key"], last["kind"], last["output"]})
	require.Contains(t, s.ok("", "log", "p-1", "--digits"), "step ,0,0  done (waited ")
	require.Contains(t, s.ok("", "log", "p-1", "--digits"), " 201100000000002\n")

	require.Contains(t, s.fails(codeNotFound, "", "log", "nope").Err, `no job has the key "nope"`)
	require.Contains(t, s.fails(cli.CodeUsage, "", "log", "-f", "p-1", "p-1").Err, "--follow: give one key, not 2")
}

// Values from outside cannot control a terminal or fill it.
func TestLogFoldsAndEscapes(t *testing.T) {
	s := newSpace(t)
	s.deploy("says", "1", "echo", `"${ start.output.name }"`)
	name := strings.Repeat("x", 300)
	s.ok("", "start", "says", "long", "--input", `{"name":"`+name+`"}`)
	s.ok("", "start", "says", "turned", "--input", "{\"name\":\"a\u202eb\u0085\"}")
	s.ok("", "wait", "long", "turned", "--timeout", "1m")
	require.Contains(t, s.ok("", "log", "long"), "x… (302 bytes)\n")
	require.NotContains(t, s.ok("", "log", "long"), name)
	require.Contains(t, s.ok("", "log", "long", "--raw"), `out    "`+name+"\"\n")
	for _, command := range []string{"log", "show"} {
		out := s.ok("", command, "turned")
		require.Contains(t, out, `a\u202eb\u0085`, command)
		require.NotContains(t, out, "\u202e", command)
		require.NotContains(t, out, "\u0085", command)
	}
}

func TestLogFollows(t *testing.T) {
	s := newSpace(t)
	s.deploy("naps", "1", "sleep", `{for: 1500ms}`)
	s.ok("", "start", "naps", "n-1", "--input", `{"name":"Ada"}`)
	out := s.ok("", "log", "-f", "n-1")
	s.inOrder(out, "sent to sleep", "step  done", "the job completed")
	require.Equal(t, 1, strings.Count(out, "sent to sleep"), "each once")
	took := regexp.MustCompile(`the job completed \(took (.*)\)`).FindStringSubmatch(out)
	require.Len(t, took, 2, out)
	require.Contains(t, s.ok("", "show", "n-1"), "completed with code 200 after "+took[1]+"\n", "both tell it by the journal")
	require.Contains(t, s.ok("", "trace", "n-1"), took[1]+"  job naps")
}

// inOrder checks that a text contains others, one after the other.
func (s *space) inOrder(text string, parts ...string) {
	s.t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		require.True(s.t, found, "%q stands not, or not behind what is before it, in:\n%s", part, text)
		rest = after
	}
}
