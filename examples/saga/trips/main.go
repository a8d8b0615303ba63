package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/examples/saga"
	"github.com/quipu-journal/quipu/workers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "trips:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	text, err := os.ReadFile(".quipu/dev.json")
	if err != nil {
		return fmt.Errorf("start `bin/worker dev` here before: %w", err)
	}
	var dev struct{ Postgres, NATS, Space string }
	if err := json.Unmarshal(text, &dev); err != nil {
		return err
	}
	reg := workers.New()
	saga.Desk{
		Agency: &saga.File{Path: ".quipu/trips.log"}, Patience: 24 * time.Hour, Cooling: time.Second,
	}.Register(reg)
	rt, err := quipu.Open(ctx, quipu.Config{
		Postgres: dev.Postgres, NATS: dev.NATS, Space: dev.Space, Workers: reg, Roles: []quipu.Role{quipu.RoleWorkers},
	})
	if err != nil {
		return err
	}
	defer rt.Close()
	return rt.Run(ctx)
}
