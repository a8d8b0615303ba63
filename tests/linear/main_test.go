package linear

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/mode"
)

// engineEnv holds the configuration of an engine process, as JSON.
const engineEnv = "QUIPU_LINEAR_ENGINE"

// TestMain runs the tests, or with engineEnv is one of their engine processes.
func TestMain(m *testing.M) {
	if config := os.Getenv(engineEnv); config != "" {
		os.Exit(engineMain(config))
	}
	goleak.VerifyTestMain(m)
}

// engineConfig is what an engine process is given.
type engineConfig struct {
	Postgres, NATS, Space string
	Stepwise              bool
	MaxBatch              int
}

// Spans short enough that a killed engine's work goes on within a round.
const (
	resend  = 300 * time.Millisecond
	ackWait = time.Second
)

// engineMain is an engine until it is stopped.
func engineMain(config string) int {
	var c engineConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	rt, err := quipu.Open(mode.With(ctx, mode.Mode{Stepwise: c.Stepwise}), quipu.Config{
		Postgres: c.Postgres, NATS: c.NATS, NATSWait: -1, Space: c.Space, Roles: []quipu.Role{quipu.RoleEngine}, NoMigrate: true,
		Resend: resend, AckWait: ackWait, MaxBatch: c.MaxBatch,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer rt.Close()
	if err := rt.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
