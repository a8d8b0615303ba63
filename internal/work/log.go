package work

import (
	"context"
	"log/slog"

	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/workers"
)

// Logger is the runtime's log for the run that ctx belongs to, with the topic, the job's
// key and id, the activity and its address, the turn and the attempt. Outside a job it is
// slog.Default(). A durable function logs a line again in each turn that passes it.
func Logger(ctx context.Context) *slog.Logger {
	base := port.LogOf(ctx)
	if base == nil {
		return slog.Default()
	}
	c := workers.Info(ctx)
	return base.With("topic", c.Topic, "job", c.Key, "id", c.Job, "activity", c.Activity, "address", c.DAD, "turn", c.Turn, "attempt", c.Attempt)
}
