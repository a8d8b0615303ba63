package usercode

import (
	"context"
	"log/slog"
)

// Log is h as the runtime calls it: where it panics, the line is lost, and nothing else.
func Log(h slog.Handler) slog.Handler { return logHandler{h} }

type logHandler struct{ h slog.Handler }

// Enabled implements slog.Handler.
func (l logHandler) Enabled(ctx context.Context, level slog.Level) (is bool) {
	_, _ = Try(func() { is = l.h.Enabled(ctx, level) })
	return is
}

// Handle implements slog.Handler.
func (l logHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	_, _ = Try(func() { err = l.h.Handle(ctx, r) })
	return err
}

// WithAttrs implements slog.Handler.
func (l logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	_, _ = Try(func() { l.h = l.h.WithAttrs(attrs) })
	return l
}

// WithGroup implements slog.Handler.
func (l logHandler) WithGroup(name string) slog.Handler {
	_, _ = Try(func() { l.h = l.h.WithGroup(name) })
	return l
}
