package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/view"
)

const stack = "panic({0x1?, 0x2?})\n\t/go/src/runtime/panic.go:859 +0x132\nmain.charge()\n\t/app/charge.go:12 +0x27\n"

// Errors from outside are folded like values, and --raw shows them as they are.
func TestErrorsAreFolded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		err         view.Failure
		folded, raw string
	}{
		"short":     {view.Failure{Class: "error", Message: "no"}, "error  error: no\n", "error  error: no\n"},
		"lines":     {view.Failure{Class: "error", Message: "one\n\ttwo\nthree\n"}, "error  error: one (+2 lines; --raw)\n", "error  error: one\n        two\n       three\n"},
		"two lines": {view.Failure{Class: "error", Message: "one\r\ntwo"}, "error  error: one (+1 line; --raw)\n", "error  error: one\n       two\n"},
		"long":      {view.Failure{Class: "error", Message: long + "\nx"}, "error  error: " + long[:193] + "… (307 bytes) (+1 line; --raw)\n", "error  error: " + long + "\n       x\n"},
		"escapes":   {view.Failure{Class: "error", Message: "a\x1b[31m\u202e\n\x1b[2J"}, "error  error: a [31m\ufffd (+1 line; --raw)\n", "error  error: a [31m\ufffd\n        [2J\n"},
		"panic":     {view.Failure{Class: "panic", Message: "panic: no till"}, "error  panic: no till\n", "error  panic: no till\n"},
		"with stack": {
			view.Failure{Class: "panic", Message: "panic: no till", Stack: stack},
			"error  panic: no till\nat     /app/charge.go:12 (--raw shows the stack)\n",
			"error  panic: no till\nat     /app/charge.go:12\nstack  panic({0x1?, 0x2?})\nstack   /go/src/runtime/panic.go:859 +0x132\nstack  main.charge()\nstack   /app/charge.go:12 +0x27\n",
		},
		"other stack": {view.Failure{Class: "error", Message: "no", Stack: "a.py"}, "error  error: no\nstack  (--raw shows it)\n", "error  error: no\nstack  a.py\n"},
	} {
		for raw, want := range map[bool]string{false: c.folded, true: c.raw} {
			var b bytes.Buffer
			l := &teller{app: &app{streams: cli.Streams{Out: &b}}, margin: -2, raw: raw, more: "--raw"}
			require.NoError(t,
				l.event(t.Context(), "k", &view.Event{Kind: view.KindFailed, Error: &c.err}))
			_, said, _ := strings.Cut(b.String(), "    \n")
			require.Equal(t, want, said, "%s, raw %v", name, raw)
		}
	}
}

// A message stands once for each attempt, although its effect, its activity and its job have it.
func TestErrorsStandOnce(t *testing.T) {
	t.Parallel()
	event := func(kind view.Kind, activity string, seq int64, message string) view.Event {
		return view.Event{
			Kind: kind, Activity: activity, Entry: seq,
			Error: &view.Failure{Class: "error", Message: message, Data: []byte(`{"a":1}`)},
		}
	}
	for name, c := range map[string]struct {
		events []view.Event
		want   int
	}{
		"an activity and its job":   {[]view.Event{event(view.KindFailed, "pay", 4, "no"), event(view.KindClosed, "", 4, "no")}, 1},
		"stepwise":                  {[]view.Event{event(view.KindFailed, "pay", 4, "no"), event(view.KindClosed, "", 6, "no")}, 1},
		"an effect and its attempt": {[]view.Event{event(view.KindEffect, "pay", 1, "no"), event(view.KindAttempt, "pay", 4, "no")}, 1},
		"two attempts":              {[]view.Event{event(view.KindAttempt, "pay", 4, "no"), event(view.KindAttempt, "pay", 6, "no")}, 2},
		"two attempts with their effects": {[]view.Event{
			event(view.KindEffect, "pay", 1, "no"), event(view.KindAttempt, "pay", 4, "no"), event(view.KindEffect, "pay", 2, "no"),
			event(view.KindFailed, "pay", 5, "no"),
		}, 2},
		"two activities":          {[]view.Event{event(view.KindFailed, "pay", 4, "no"), event(view.KindFailed, "ship", 5, "no")}, 2},
		"an element and its list": {[]view.Event{event(view.KindFailed, "pay", 4, "no"), event(view.KindFailed, "ship", 4, "no")}, 1},
		"another message":         {[]view.Event{event(view.KindEffect, "pay", 1, "no"), event(view.KindFailed, "pay", 4, "pay: no")}, 2},
	} {
		var b bytes.Buffer
		l := &teller{app: &app{streams: cli.Streams{Out: &b}}, margin: -2, more: "--raw"}
		for i := range c.events {
			require.NoError(t, l.event(t.Context(), "k", &c.events[i]))
		}
		require.Equal(t, c.want, strings.Count(b.String(), "error: "), "%s:\n%s", name, b.String())
	}
}
