package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/transport/nats"
)

// preflightNATS checks the server and the existing streams, and prints what it found (4.4). It
// uses its own connection, since the runtime makes the streams as soon as it connects.
func (p *process) preflightNATS(ctx context.Context, cfg quipu.Config) error {
	over, ok := below.NATS(cfg).(nats.Config)
	if !ok {
		return fmt.Errorf("no preflight for a bus of type %T", below.NATS(cfg))
	}
	over.Name = "quipu-preflight"
	bus, err := nats.Open(ctx, over)
	if err != nil {
		return cli.Configuration(err)
	}
	defer func() { _ = bus.Close() }()
	report, err := bus.Preflight(ctx)
	for _, problem := range report.Problems {
		p.log.Error("preflight refuses", "server", "nats", "problem", problem)
	}
	for _, warning := range report.Warnings {
		p.log.Warn("preflight warns", "server", "nats", "warning", warning)
	}
	if errors.Is(err, nats.ErrPreflight) {
		return cli.Exit(codePreflight, err)
	}
	if err != nil {
		return err
	}
	p.log.Info("preflight", "server", "nats", "version", report.ServerVersion, "max_payload", report.MaxPayload, "streams", len(report.Streams))
	return nil
}
