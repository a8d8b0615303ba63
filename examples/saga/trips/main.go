package main

import (
	"context"
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
	cfg, err := quipu.ConfigFromDev(".quipu")
	if err != nil {
		return err
	}
	reg := workers.New()
	saga.Desk{
		Agency: &saga.File{Path: ".quipu/trips.log"}, Patience: 24 * time.Hour, Cooling: time.Second,
	}.Register(reg)
	cfg.Workers, cfg.Roles = reg, []quipu.Role{quipu.RoleWorkers}
	rt, err := quipu.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer rt.Close()
	return rt.Run(ctx)
}
