package linear

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/testkit"
	"github.com/quipu-journal/quipu/internal/testkit/world"
)

// engineEnv holds the configuration of an engine process, as JSON.
const engineEnv = "QUIPU_LINEAR_ENGINE"

// TestMain runs the tests, or with engineEnv is one of their engine processes.
func TestMain(m *testing.M) {
	world.Child(engineEnv, engine)
	goleak.VerifyTestMain(m)
}

// engineConfig is what an engine process is given.
type engineConfig struct {
	Postgres, NATS, Space string
	Stepwise              bool
	MaxBatch, HotBytes    int
}

// Spans short enough that a killed engine's work goes on within a round.
const (
	resend  = 300 * time.Millisecond
	ackWait = time.Second
)

// engine is an engine until it is stopped.
func engine(ctx context.Context, c engineConfig) error {
	rt, err := testkit.Open(ctx, quipu.Config{
		Postgres: c.Postgres, NATS: c.NATS, NATSWait: -1, Space: c.Space, Roles: []quipu.Role{quipu.RoleEngine},
		NoMigrate: true,
		Resend:    resend, AckWait: ackWait, MaxBatch: c.MaxBatch, HotBytes: c.HotBytes,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}, below.Mode{Stepwise: c.Stepwise})
	if err != nil {
		return err
	}
	defer rt.Close()
	return rt.Run(ctx)
}
