package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/fault"
	"github.com/quipu-journal/quipu/internal/testkit"
	"github.com/quipu-journal/quipu/telemetry"
)

// work is a worker process: engine and handlers until it is stopped.
func work(ctx context.Context, c workerConfig) error {
	arm(&c)
	tell, flush, err := telemetry.New(ctx,
		telemetry.Config{Service: "faults", Space: c.Space, Getenv: func(name string) string {
			if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
				return c.Collector
			}
			return ""
		}})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = flush(ctx) // the collector may be silent
	}()
	rt, err := testkit.Open(ctx, quipu.Config{
		Postgres: c.Postgres, NATS: c.NATS, NATSWait: -1, Space: c.Space, Workers: handlers(c.Outside, c.Guarded),
		HotBytes: c.HotBytes, Resend: c.Resend, Lease: c.Lease, AckWait: c.Lease, Drain: 5 * time.Second,
		MaxBatch: c.MaxBatch, Committers: c.Committers, Concurrency: c.Concurrency, NoMigrate: true, Build: c.Build,
		NATSOptions: quipu.NATSOptions{MaxBytes: c.StreamBytes}, Observer: tell,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, below.Mode{Stepwise: c.Stepwise, NoFold: c.NoFold, NoLocal: c.NoLocal, NoEarly: c.NoEarly})
	if err != nil {
		return err
	}
	defer rt.Close()
	fmt.Println("open") // a signal is heeded from here on, and asks for a drain
	done := make(chan struct{})
	go func() {
		defer close(done)
		starts(ctx, rt, c.Start)
	}()
	err = rt.Run(ctx)
	<-done
	return err
}

// starts starts the jobs, again and again until it hears that they exist (E17).
func starts(ctx context.Context, rt *quipu.Runtime, ids []string) {
	for _, id := range ids {
		for ctx.Err() == nil {
			_, err := rt.Start(ctx, "cell", id, orderOf(id))
			if err == nil {
				break
			}
			slog.Warn("a start is repeated", "job", id, "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// arm has the process stand still at its point, once.
func arm(c *workerConfig) {
	var passed atomic.Int64
	fault.Set(func(p fault.Point, about string) {
		if p == fault.K16 && c.Acks {
			tell(c.Control+"/ack", json.RawMessage(about))
		}
		if p != c.Point || passed.Add(1) != int64(c.Nth) {
			return
		}
		slog.Info("stands at a fault point", "point", p, "about", about)
		tell(c.Control+"/at", arrival{PID: os.Getpid(), Point: p, About: about})
		slog.Info("goes on", "point", p)
	})
}

// tell returns when the harness has answered, which is how it holds a process.
func tell(url string, what any) {
	raw, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(raw)) //nolint:gosec,noctx // the harness, for as long as it takes
	if err != nil {
		slog.Error("the harness is gone", "error", err)
		os.Exit(3)
	}
	_ = resp.Body.Close()
}
