package trace

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/world"
	"github.com/quipu-journal/quipu/telemetry"
	"github.com/quipu-journal/quipu/workers"
)

// childEnv holds the configuration of a worker process, as JSON. The test binary
// is that process where it is set.
const childEnv = "QUIPU_TRACE_CHILD"

// short is a lease short enough for a test to see another process take over.
const short = 2 * time.Second

type childConfig struct{ Postgres, NATS, Gate string }

func TestMain(m *testing.M) {
	world.Child(childEnv, child)
	devtest.Main(m)
}

// child is engine and handler, traced as the OTEL_ variables say, until SIGTERM.
func child(ctx context.Context, c childConfig) error {
	tel, shutdown, err := telemetry.New(ctx, telemetry.Config{Space: "shop", Traces: telemetry.TracesLive})
	if err != nil {
		return err
	}
	reg := workers.New()
	workers.Handle(reg, "hold", func(ctx context.Context, in map[string]any) (map[string]any, error) {
		return hold(ctx, tel, c.Gate, in)
	})
	workers.Handle(reg, "step", func(ctx context.Context, in map[string]any) (map[string]any, error) {
		if in["fails"] == true && workers.Info(ctx).Attempt == 1 {
			return nil, errors.New("the first attempt fails")
		}
		return in, nil
	})
	rt, err := quipu.Open(ctx, quipu.Config{
		Postgres: c.Postgres, NATS: c.NATS, Space: "shop", Workers: reg, Observer: tel,
		Resend: short / 4, Lease: short, AckWait: short,
	})
	if err != nil {
		return err
	}
	defer rt.Close()
	if err := rt.Run(ctx); err != nil {
		return err
	}
	return shutdown(context.Background())
}

// hold opens spans of its own, has all ended spans exported, and then waits outside until the gate
// lets it go. Then one span is still open, with an ended one inside.
func hold(ctx context.Context, tel *telemetry.Telemetry, gate string, in map[string]any) (map[string]any, error) {
	provider := tel.TracerProvider()
	_, span := provider.Tracer("shop").Start(ctx, "own work")
	span.End()
	ctx, outer := provider.Tracer("shop").Start(ctx, "outer")
	defer outer.End()
	_, inner := provider.Tracer("shop").Start(ctx, "inner")
	inner.End()
	if p, ok := provider.(*sdktrace.TracerProvider); ok {
		if err := p.ForceFlush(ctx); err != nil {
			return nil, err
		}
	}
	return effects.Do(ctx, "knock", func(ctx context.Context) (map[string]any, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, gate, nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		return in, resp.Body.Close()
	}, effects.Idempotent)
}
