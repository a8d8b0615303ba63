package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport/nats"
)

// admit checks the database, migrates the schema, and records what Config.Accept accepted. A
// process that only reads needs nothing of it.
func (p *Process) admit(ctx context.Context) error {
	c := p.cfg
	if p.cfg.Mode.Reads {
		return nil
	}
	report, err := p.Store.Preflight(ctx, c.Accept)
	if err != nil {
		return err
	}
	for _, warning := range report.Warnings {
		c.Logger.Warn("preflight warns", "server", "postgres", "warning", warning)
	}
	p.login = report.Login
	c.Logger.Info("preflight", "server", "postgres", "version", report.Server, "checked", report.Facts)
	if !c.NoMigrate {
		if err := p.Store.Migrate(ctx); err != nil {
			return err
		}
	}
	if len(report.Accepted) == 0 {
		return nil
	}
	return p.Store.Accept(ctx, report.Accepted)
}

// checkKeys says that the space runs without MACs, which only the database knows (S3).
func (p *Process) checkKeys() {
	if p.cfg.Mode.Reads || p.cfg.NATS == nil || p.Keys.Ring().On() {
		return
	}
	p.cfg.Logger.Warn("preflight warns", "server", "postgres",
		"warning", "the space runs without MACs: whoever can publish on its subjects of NATS can answer its requests (`quipu keys on` ends that)")
}

// checkNATS checks the server and the streams that are there, if NATS was waited for. Streams
// that break the promise are also refused where they are used.
func (p *Process) checkNATS(ctx context.Context) error {
	if p.cfg.NATSWait < 0 || !p.Bus.Connected() {
		return nil
	}
	report, err := p.Bus.Preflight(ctx)
	for _, problem := range report.Problems {
		p.cfg.Logger.Error("preflight refuses", "server", "nats", "problem", problem)
	}
	for _, warning := range report.Warnings {
		p.cfg.Logger.Warn("preflight warns", "server", "nats", "warning", warning)
	}
	if errors.Is(err, nats.ErrPreflight) {
		return fmt.Errorf("%w: %w", store.ErrPreflight, err)
	}
	if err == nil {
		facts := []any{"server", "nats", "version", report.ServerVersion, "max_payload", report.MaxPayload}
		if !p.cfg.onNATS().LeaveStreams { // otherwise it may not look at them
			facts = append(facts, "streams", len(report.Streams))
		}
		p.cfg.Logger.Info("preflight", facts...)
	}
	return err
}

// natsWait is how long Open waits for NATS: half of the time that is left at most, so that the
// error still says what failed.
func (p *Process) natsWait(ctx context.Context) time.Duration {
	wait := p.cfg.NATSWait
	if end, bounded := ctx.Deadline(); bounded {
		wait = min(wait, time.Until(end)/2)
	}
	return wait
}

// alsoAway adds to the error about a database that is away whether NATS is away, too: who starts
// the servers has to know of both.
func (p *Process) alsoAway(ctx context.Context, err error) error {
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrLogin) ||
		errors.Is(err, store.ErrAnotherDatabase) || p.cfg.NATS == nil || p.cfg.NATSWait < 0 {
		return err
	}
	bus, gone := nats.Open(ctx, p.cfg.onNATS())
	if gone == nil {
		gone = bus.Reach(ctx, p.natsWait(ctx))
		_ = bus.Close()
	}
	if gone != nil {
		return fmt.Errorf("%w; and %w", err, gone)
	}
	return err
}
