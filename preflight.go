package quipu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport/nats"
)

// ErrPreflight is wrapped by the error of Open about a setting of Postgres or NATS that would
// break the promise (S7), and with ErrUnavailable by those of writing calls while a setting of Postgres
// is not any more as it was then. The error names each check and what to do; Config.Accept accepts some
// of them by their names.
var ErrPreflight = store.ErrPreflight

// admit checks the database, migrates the schema, and records what Config.Accept accepted. A
// process that only reads needs nothing of it.
func (rt *Runtime) admit(ctx context.Context) error {
	c := rt.cfg
	if rt.how.Reads {
		return nil
	}
	report, err := rt.store.Preflight(ctx, c.Accept)
	if err != nil {
		return err
	}
	for _, warning := range report.Warnings {
		c.Logger.Warn("preflight warns", "server", "postgres", "warning", warning)
	}
	rt.login = report.Login
	c.Logger.Info("preflight", "server", "postgres", "version", report.Server, "checked", report.Facts)
	if !c.NoMigrate {
		if err := rt.store.Migrate(ctx); err != nil {
			return err
		}
	}
	if len(report.Accepted) == 0 {
		return nil
	}
	return rt.store.Accept(ctx, report.Accepted)
}

// checkKeys says that the space runs without MACs, which only the database knows (S3).
func (rt *Runtime) checkKeys() {
	if rt.how.Reads || !rt.cfg.usesNATS() || rt.keys.Ring().On() {
		return
	}
	rt.cfg.Logger.Warn("preflight warns", "server", "postgres",
		"warning", "the space runs without MACs: whoever can publish on its subjects of NATS can answer its requests (`quipu keys on` ends that)")
}

// checkNATS checks the server and the streams that are there, if NATS was waited for. Streams
// that break the promise are also refused where they are used.
func (rt *Runtime) checkNATS(ctx context.Context) error {
	if rt.cfg.NATSWait < 0 || !rt.bus.Connected() {
		return nil
	}
	report, err := rt.bus.Preflight(ctx)
	for _, problem := range report.Problems {
		rt.cfg.Logger.Error("preflight refuses", "server", "nats", "problem", problem)
	}
	for _, warning := range report.Warnings {
		rt.cfg.Logger.Warn("preflight warns", "server", "nats", "warning", warning)
	}
	if errors.Is(err, nats.ErrPreflight) {
		return fmt.Errorf("%w: %w", ErrPreflight, err)
	}
	if err == nil {
		facts := []any{"server", "nats", "version", report.ServerVersion, "max_payload", report.MaxPayload}
		if !rt.cfg.natsConfig().LeaveStreams { // otherwise it may not look at them
			facts = append(facts, "streams", len(report.Streams))
		}
		rt.cfg.Logger.Info("preflight", facts...)
	}
	return err
}

// natsWait is how long Open waits for NATS: half of the time that is left at most, so that the
// error still says what failed.
func (rt *Runtime) natsWait(ctx context.Context) time.Duration {
	wait := rt.cfg.NATSWait
	if end, bounded := ctx.Deadline(); bounded {
		wait = min(wait, time.Until(end)/2)
	}
	return wait
}

// alsoAway adds to the error about a database that is away whether NATS is away, too: who starts
// the servers has to know of both.
func (rt *Runtime) alsoAway(ctx context.Context, err error) error {
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrLogin) || errors.Is(err, ErrAnotherDatabase) || !rt.cfg.usesNATS() || rt.cfg.NATSWait < 0 {
		return err
	}
	bus, gone := nats.Open(ctx, rt.cfg.natsConfig())
	if gone == nil {
		gone = bus.Reach(ctx, rt.natsWait(ctx))
		_ = bus.Close()
	}
	if gone != nil {
		return fmt.Errorf("%w; and %w", err, gone)
	}
	return err
}
