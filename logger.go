package quipu

import (
	"context"
	"log/slog"

	"github.com/quipu-journal/quipu/internal/work"
)

// Logger returns the log of the handler run that ctx belongs to, with its job, activity and
// attempt.
func Logger(ctx context.Context) *slog.Logger { return work.Logger(ctx) }
