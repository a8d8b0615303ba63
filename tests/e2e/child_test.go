package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/testkit"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/transport/nats"
	"github.com/quipu-journal/quipu/workers"
)

// childEnv holds the configuration of a worker process, as JSON.
const childEnv = "QUIPU_E2E_CHILD"

type childConfig struct {
	Postgres, NATS, Space, Receiver string
	Worker, WorkerNATS              string // the servers for the handlers' own logins; "" for none
	Stepwise, NoLocal, NoEarly      bool
	MaxBatch, HotBytes              int    // 0: their defaults
	Starts                          string // a flow of which the process starts a job, under its name, when it is ready
}

// child is the configuration of a worker process of the space that calls a receiver.
func (e *env) child(r *world.Outside) childConfig {
	c := childConfig{
		Postgres: e.Postgres, NATS: e.NATS.URL(), Space: e.Space, Receiver: r.URL, Stepwise: e.stepwise,
		NoLocal: e.noLocal, NoEarly: e.noEarly, HotBytes: e.hot,
	}
	if e.logins != nil {
		c.Postgres, c.NATS = e.logins.engine, e.user(nats.Engine)
		c.Worker, c.WorkerNATS = e.worker(outside(r.URL).Topics())
	}
	return c
}

// moreHandlers register, in every worker process, what some tests ask for.
var moreHandlers []func(reg *workers.Registry, receiver string)

// childRuntime is that of a worker process, for handlers that use it in a
// transaction.
var childRuntime atomic.Pointer[quipu.Runtime]

// child is a worker process: engine and handlers until it is stopped.
func child(ctx context.Context, c childConfig) error {
	how := below.Mode{Stepwise: c.Stepwise, NoLocal: c.NoLocal, NoEarly: c.NoEarly}
	cfg := quipu.Config{
		Postgres: c.Postgres, NATS: c.NATS, NATSWait: -1, Space: c.Space, Workers: outside(c.Receiver),
		Resend: world.Resend, Lease: world.Lease, AckWait: world.Lease, NoMigrate: true, MaxBatch: c.MaxBatch,
		HotBytes: c.HotBytes,
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	runtimes := []quipu.Config{cfg}
	if c.Worker != "" {
		runtimes = []quipu.Config{engineOf(cfg), workersOf(cfg, c.Worker, c.WorkerNATS)}
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, cfg := range runtimes {
		rt, err := testkit.Open(ctx, cfg, how)
		// on a machine that stands still for seconds
		for try := 0; errors.Is(err, quipu.ErrUnavailable) && try < 3; try++ {
			rt, err = testkit.Open(ctx, cfg, how)
		}
		if err != nil {
			return err
		}
		defer rt.Close()
		childRuntime.Store(rt)
		g.Go(func() error { return rt.Run(ctx) })
	}
	fmt.Println("open") // a signal is heeded from here on, and asks for a drain
	if c.Starts != "" {
		g.Go(func() error {
			rt := childRuntime.Load()
			select {
			case <-rt.Ready():
			case <-ctx.Done():
				return nil
			}
			_, err := rt.Start(ctx, c.Starts, c.Starts, order{ID: c.Starts})
			return err
		})
	}
	return g.Wait()
}

type order struct {
	ID string `json:"id"`
}

// outside registers handlers that call the receiver, each as one Idempotent
// effect (E3).
func outside(receiver string) *workers.Registry {
	reg := workers.New()
	for _, topic := range []string{"charge", "reserve", "ship"} {
		workers.Handle(reg, topic, func(ctx context.Context, in order) (map[string]string, error) {
			info := workers.Info(ctx)
			if topic == "reserve" && info.Attempt == 1 && strings.HasSuffix(in.ID, "7") {
				return nil, errors.New("out of stock just now")
			}
			return effects.Do(ctx, topic, func(ctx context.Context) (map[string]string, error) {
				return world.Call(ctx, receiver, effects.Key(ctx), topic+" "+in.ID)
			}, effects.Idempotent)
		}, workers.Early())
	}
	workers.Handle(reg, "guarded", func(ctx context.Context, in order) (map[string]string, error) {
		return effects.Do(ctx, "touch", func(ctx context.Context) (map[string]string, error) {
			return world.Call(ctx, receiver, effects.Key(ctx), "touch "+in.ID)
		})
	}, workers.Early())
	workers.Handle(reg, "twostep", func(ctx context.Context, in order) (map[string]string, error) {
		for _, name := range []string{"first", "second"} {
			_, err := effects.Do(ctx, name, func(ctx context.Context) (map[string]string, error) {
				return world.Call(ctx, receiver, effects.Key(ctx), name+" "+in.ID)
			}, effects.Idempotent)
			if err != nil {
				return nil, err
			}
		}
		return map[string]string{"receipt": in.ID}, nil
	}, workers.Early())
	workers.RegisterBuiltins(reg)
	for _, register := range moreHandlers {
		register(reg, receiver)
	}
	return reg
}

func startChild(t *testing.T, c childConfig) *world.Process {
	t.Helper()
	p := world.StartProcess(t, &devtest.Log{Keep: keepLog}, os.Args[0], world.Variable(childEnv, c))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("worker %d said:\n%s", p.PID, p.Log)
		}
	})
	return p
}
