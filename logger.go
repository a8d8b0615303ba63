package quipu

import (
	"context"
	"log/slog"

	"github.com/quipu-journal/quipu/workers"
)

// Logger returns the log of the handler run that ctx belongs to, with its job, activity and
// attempt (workers.Logger).
func Logger(ctx context.Context) *slog.Logger { return workers.Logger(ctx) }
