package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// rawLog is how one gets from show to what it folds.
const rawLog = "quipu log --raw"

// said is an error as log has printed it.
type said struct {
	kind          view.Kind
	who           string
	chain         journal.GUID
	seq           int64
	message, data string
}

// failed prints the error of an event, without what stands above already.
func (l *teller) failed(w io.Writer, ev *view.Event) {
	f, was := ev.Error, l.said
	l.said = said{ev.Kind, l.who(ev), ev.Chain, ev.Entry, f.Message, string(f.Data)}
	again := was.message == f.Message && was.repeated(&l.said)
	l.failure(w, f, !again)
	if f.Data != nil && !(again && was.data == string(f.Data)) {
		l.value(w, "data", &view.Value{JSON: f.Data})
	}
	if l.raw && f.Stack != "" {
		for line := range strings.Lines(f.Stack) {
			l.line(w, "stack", strings.TrimRight(line, "\r\n"))
		}
	}
}

// repeated says that the next error comes from this one: in the same entry, of the job that
// it closed, or of the activity whose effect it was.
func (s *said) repeated(next *said) bool {
	switch {
	case s.kind == "":
		return false
	case next.kind == view.KindClosed, s.chain == next.chain && s.seq == next.seq:
		return true
	}
	return s.kind == view.KindEffect && next.kind != view.KindEffect && s.who == next.who
}

// failure prints an error: its message if asked for, and where it came from.
func (l *teller) failure(w io.Writer, f *view.Failure, message bool) {
	switch {
	case !message:
	case l.raw:
		first, rest, _ := strings.Cut(lined(failureText(f)), "\n")
		l.line(w, "error", first)
		for line := range strings.Lines(rest) {
			l.line(w, "", strings.TrimSuffix(line, "\n"))
		}
	default:
		l.line(w, "error", foldedError(f, l.more))
	}
	frame := explain.Frame(f.Stack)
	switch {
	case frame != "" && l.raw:
		l.line(w, "at", frame)
	case frame != "":
		l.line(w, "at", frame+" ("+l.more+" shows the stack)")
	case f.Stack != "" && !l.raw:
		l.line(w, "stack", "("+l.more+" shows it)")
	}
}

// failureText is the class and the message. The message of a panic begins with its class.
func failureText(f *view.Failure) string {
	if strings.HasPrefix(f.Message, f.Class+": ") {
		return f.Message
	}
	return f.Class + ": " + f.Message
}

// lined has newlines only between lines.
func lined(text string) string {
	return strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
}

// foldedError is the first line of an error, cut like a value, and how to see the rest.
func foldedError(f *view.Failure, more string) string {
	first, rest, found := strings.Cut(lined(failureText(f)), "\n")
	if first = folded(first); !found {
		return first
	}
	return fmt.Sprintf("%s (+%s; %s)", first, counted(strings.Count(rest, "\n")+1, "line"), more)
}
