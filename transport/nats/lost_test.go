package nats_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/transport"
)

// told passes on what is logged.
type told chan slog.Record

func (told) Enabled(context.Context, slog.Level) bool { return true }
func (h told) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h told) WithGroup(string) slog.Handler          { return h }

func (h told) Handle(_ context.Context, r slog.Record) error {
	select {
	case h <- r:
	default:
	}
	return nil
}

// A worker that comes before the first engine of its space says so once, and not at each look.
func TestAWorkerWithoutAnEngineWarnsOnce(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	cfg := config(devtest.NATS(t))
	said := make(told, 64)
	cfg.LeaveStreams, cfg.Log = true, slog.New(said)
	bus := open(t, cfg)
	done := make(chan error, 1)
	go func() { done <- bus.Consume(ctx, transport.ToWork("pay.charge"), 1, func(transport.Delivery) {}) }()
	for i := range 4 {
		r := devtest.Await(t, "what the bus logs", said)
		require.Equal(t, "a topic has no consumer: an engine of the space makes it, and is asked again", r.Message)
		require.Equal(t, i == 0, r.Level == slog.LevelWarn, i)
	}
	end()
	devtest.Await(t, "the end of the consumer", done)
}
