package engine

import (
	"log/slog"
	"strings"
)

// lines are the lines that were logged.
type lines struct{ all []string }

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Write implements io.Writer for a handler, which calls it one line at a time.
func (l *lines) Write(b []byte) (int, error) {
	l.all = append(l.all, strings.TrimSpace(string(b)))
	return len(b), nil
}
