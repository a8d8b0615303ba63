package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/journal"
)

const stack = "panic({0x1?, 0x2?})\n\t/go/src/runtime/panic.go:859 +0x132\nmain.charge()\n\t/app/charge.go:12 +0x27\n"

// Errors from outside are folded like values, and --raw shows them as they are.
func TestErrorsAreFolded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		err         journal.Failure
		folded, raw string
	}{
		"short":     {journal.Failure{Class: "error", Message: "no"}, "error  error: no\n", "error  error: no\n"},
		"lines":     {journal.Failure{Class: "error", Message: "one\n\ttwo\nthree\n"}, "error  error: one (+2 lines; --raw)\n", "error  error: one\n        two\n       three\n"},
		"two lines": {journal.Failure{Class: "error", Message: "one\r\ntwo"}, "error  error: one (+1 line; --raw)\n", "error  error: one\n       two\n"},
		"long":      {journal.Failure{Class: "error", Message: long + "\nx"}, "error  error: " + long[:193] + "… (307 bytes) (+1 line; --raw)\n", "error  error: " + long + "\n       x\n"},
		"escapes":   {journal.Failure{Class: "error", Message: "a\x1b[31m\u202e\n\x1b[2J"}, "error  error: a [31m\ufffd (+1 line; --raw)\n", "error  error: a [31m\ufffd\n        [2J\n"},
		"panic":     {journal.Failure{Class: "panic", Message: "panic: no till"}, "error  panic: no till\n", "error  panic: no till\n"},
		"with stack": {
			journal.Failure{Class: "panic", Message: "panic: no till", Stack: stack},
			"error  panic: no till\nat     /app/charge.go:12 (--raw shows the stack)\n",
			"error  panic: no till\nat     /app/charge.go:12\nstack  panic({0x1?, 0x2?})\nstack   /go/src/runtime/panic.go:859 +0x132\nstack  main.charge()\nstack   /app/charge.go:12 +0x27\n",
		},
		"other stack": {journal.Failure{Class: "error", Message: "no", Stack: "a.py"}, "error  error: no\nstack  (--raw shows it)\n", "error  error: no\nstack  a.py\n"},
	} {
		for raw, want := range map[bool]string{false: c.folded, true: c.raw} {
			var b bytes.Buffer
			l := &teller{app: &app{streams: cli.Streams{Out: &b}}, margin: -2, raw: raw, more: "--raw"}
			require.NoError(t,
				l.event(t.Context(), "k", &history.Event{Kind: history.KindFailed, Error: &c.err, Element: -1}))
			_, said, _ := strings.Cut(b.String(), "    \n")
			require.Equal(t, want, said, "%s, raw %v", name, raw)
		}
	}
}

// A message stands once for each attempt, although its effect, its activity and its job have it.
func TestErrorsStandOnce(t *testing.T) {
	t.Parallel()
	event := func(kind history.Kind, activity string, seq int64, message string) history.Event {
		return history.Event{
			Kind: kind, Activity: activity, Element: -1, Seq: seq,
			Error: &journal.Failure{Class: "error", Message: message, Data: []byte(`{"a":1}`)},
		}
	}
	for name, c := range map[string]struct {
		events []history.Event
		want   int
	}{
		"an activity and its job":   {[]history.Event{event(history.KindFailed, "pay", 4, "no"), event(history.KindClosed, "", 4, "no")}, 1},
		"stepwise":                  {[]history.Event{event(history.KindFailed, "pay", 4, "no"), event(history.KindClosed, "", 6, "no")}, 1},
		"an effect and its attempt": {[]history.Event{event(history.KindEffect, "pay", 1, "no"), event(history.KindAttempt, "pay", 4, "no")}, 1},
		"two attempts":              {[]history.Event{event(history.KindAttempt, "pay", 4, "no"), event(history.KindAttempt, "pay", 6, "no")}, 2},
		"two attempts with their effects": {[]history.Event{
			event(history.KindEffect, "pay", 1, "no"), event(history.KindAttempt, "pay", 4, "no"), event(history.KindEffect, "pay", 2, "no"),
			event(history.KindFailed, "pay", 5, "no"),
		}, 2},
		"two activities":          {[]history.Event{event(history.KindFailed, "pay", 4, "no"), event(history.KindFailed, "ship", 5, "no")}, 2},
		"an element and its list": {[]history.Event{event(history.KindFailed, "pay", 4, "no"), event(history.KindFailed, "ship", 4, "no")}, 1},
		"another message":         {[]history.Event{event(history.KindEffect, "pay", 1, "no"), event(history.KindFailed, "pay", 4, "pay: no")}, 2},
	} {
		var b bytes.Buffer
		l := &teller{app: &app{streams: cli.Streams{Out: &b}}, margin: -2, more: "--raw"}
		for i := range c.events {
			require.NoError(t, l.event(t.Context(), "k", &c.events[i]))
		}
		require.Equal(t, c.want, strings.Count(b.String(), "error: "), "%s:\n%s", name, b.String())
	}
}
