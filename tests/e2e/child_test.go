package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/mode"
	"github.com/quipu-journal/quipu/transport/nats"
	"github.com/quipu-journal/quipu/workers"
)

// childEnv holds the configuration of a worker process, as JSON.
const childEnv = "QUIPU_E2E_CHILD"

type childConfig struct {
	Postgres, NATS, Space, Receiver string
	Worker, WorkerNATS              string // the servers for the handlers' own logins; "" for none
	Stepwise                        bool
	MaxBatch                        int // 0: its default
}

// child is the configuration of a worker process of the space that calls a receiver.
func (e *env) child(r *receiver) childConfig {
	c := childConfig{
		Postgres: e.dsn, NATS: e.nats.URL(), Space: e.space, Receiver: r.URL, Stepwise: e.stepwise,
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

// childMain is a worker process: engine and handlers until it is stopped.
func childMain(config string) int {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx = mode.With(ctx, mode.Mode{Stepwise: c.Stepwise})
	cfg := quipu.Config{
		Postgres: c.Postgres, NATS: c.NATS, NATSWait: -1, Space: c.Space, Workers: outside(c.Receiver),
		Resend: quickResend, Lease: quickLease, AckWait: quickLease, NoMigrate: true, MaxBatch: c.MaxBatch,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	runtimes := []quipu.Config{cfg}
	if c.Worker != "" {
		runtimes = []quipu.Config{engineOf(cfg), workersOf(cfg, c.Worker, c.WorkerNATS)}
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, cfg := range runtimes {
		rt, err := quipu.Open(ctx, cfg)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer rt.Close()
		childRuntime.Store(rt)
		g.Go(func() error { return rt.Run(ctx) })
	}
	if err := g.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
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
				return call(ctx, receiver, effects.Key(ctx), topic+" "+in.ID)
			}, effects.Idempotent)
		})
	}
	workers.Handle(reg, "guarded", func(ctx context.Context, in order) (map[string]string, error) {
		return effects.Do(ctx, "touch", func(ctx context.Context) (map[string]string, error) {
			return call(ctx, receiver, effects.Key(ctx), "touch "+in.ID)
		})
	})
	workers.Handle(reg, "twostep", func(ctx context.Context, in order) (map[string]string, error) {
		for _, name := range []string{"first", "second"} {
			_, err := effects.Do(ctx, name, func(ctx context.Context) (map[string]string, error) {
				return call(ctx, receiver, effects.Key(ctx), name+" "+in.ID)
			}, effects.Idempotent)
			if err != nil {
				return nil, err
			}
		}
		return map[string]string{"receipt": in.ID}, nil
	})
	workers.RegisterBuiltins(reg)
	for _, register := range moreHandlers {
		register(reg, receiver)
	}
	return reg
}

func call(ctx context.Context, receiver, key, what string) (map[string]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, receiver+"/?what="+url.QueryEscape(what), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := map[string]string{}
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

// child is a worker process that a test started; the test stops it by its pid.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	log *devtest.Log
}

func startChild(t *testing.T, c childConfig) *child {
	t.Helper()
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	p := &child{t: t, cmd: exec.Command(os.Args[0]), log: &devtest.Log{Keep: keepLog}}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	require.NoError(t, p.cmd.Start())
	t.Cleanup(p.kill)
	return p
}

// signal sends a signal to the process, by its pid. One that is stopped stands when
// it returns: the kernel takes its time, in which the process could go on.
func (p *child) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
	if s == syscall.SIGSTOP {
		require.Eventually(p.t, p.stands, patience, time.Millisecond)
	}
}

// stands says that the process is stopped; where nobody can tell, that it may be.
func (p *child) stands() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	return err != nil || strings.Contains(string(stat), ") T ")
}

// terminate asks the process to drain and waits until it has ended well (T10).
func (p *child) terminate() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	require.NoError(p.t, p.cmd.Wait(), "%s", p.log)
}

// kill is SIGKILL: no deferred call, no flush (F1).
func (p *child) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	if p.t.Failed() {
		p.t.Logf("worker %d said:\n%s", p.cmd.Process.Pid, p.log)
	}
}
