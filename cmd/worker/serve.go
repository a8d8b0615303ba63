package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/telemetry"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

const (
	// drainSlack is how much longer than Config.Drain a drain may take, for handlers that ignore
	// the end of their context, and for last commits and acks.
	drainSlack = 15 * time.Second
	// flushWait bounds the sending of the last spans.
	flushWait = 5 * time.Second
)

// process is one run of the command worker.
type process struct {
	opts   options
	err    io.Writer
	log    *slog.Logger
	flows  []flowFile
	dev    bool // worker dev
	watch  bool // its flow files are deployed as they are edited
	getenv func(string) string

	handlers *workers.Registry
	console  webConsole
	own      ownServers
}

// newProcess checks everything that needs no server.
func newProcess(o options, s cli.Streams) (*process, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	log, err := o.logger(s.Err)
	if err != nil {
		return nil, err
	}
	flows, err := readFlows(o.flows, s.Err)
	if err != nil {
		return nil, err
	}
	p := &process{opts: o, err: s.Err, log: log, flows: flows, getenv: s.Getenv, handlers: workers.New()}
	if !o.noBuiltins {
		p.builtins().Register(p.handlers)
	}
	if err := p.handlers.Check(); err != nil { // of --http-allow and --http-deny
		return nil, cli.Exit(cli.CodeUsage, err)
	}
	return p, nil
}

// hotBytes converts --hot-mib for quipu.Config, where a negative value means none.
func hotBytes(mib int) int {
	if mib == 0 {
		return -1
	}
	return mib << 20
}

// config returns the runtime's configuration, without the servers of worker dev.
func (p *process) config() quipu.Config {
	o := p.opts
	cfg := quipu.Config{
		Postgres: o.postgres, NATS: o.nats, Space: o.space,
		Workers: p.handlers, Lanes: o.lanes, Concurrency: o.concurrency, Committers: o.committers,
		MaxBatch: o.maxBatch, Archive: o.archive, HotBytes: hotBytes(o.hot),
		Resend: o.resend, Lease: o.lease, AckWait: o.ackWait, Drain: o.drain,
		NoMigrate: o.noMigrate, Accept: o.accept,
		Name: o.name, Build: cli.Build(), Logger: p.log,
	}
	cfg.NATSOptions, _ = o.over.Options() // check has looked at them
	for _, r := range o.roles {
		cfg.Roles = append(cfg.Roles, quipu.Role(r))
	}
	return cfg
}

// serve runs the process until ctx ends. It calls ready, if that is not nil, when the process
// takes work.
func (p *process) serve(ctx context.Context, cfg quipu.Config, ready func(url string) error) (err error) {
	var missing []string
	if cfg.Postgres == "" {
		missing = append(missing, "--postgres (QUIPU_POSTGRES)")
	}
	if cfg.NATS == "" && needsNATS(cfg.Roles) {
		missing = append(missing, "--nats (QUIPU_NATS)")
	}
	if len(missing) > 0 {
		return cli.Exitf(cli.CodeUsage, "missing: %s; `worker dev` brings both servers itself", strings.Join(missing, " and "))
	}
	err = postgres.CheckDSN(cfg.Postgres)
	if err == nil && cfg.NATS != "" {
		err = transport.CheckURL(cfg.NATS)
	}
	if err != nil {
		return cli.Configuration(err)
	}
	tel, flush, err := telemetry.New(ctx, telemetry.Config{
		Service: "quipu-worker", Version: cfg.Build, Space: cfg.Space, Name: cfg.Name, ErrorText: p.opts.telemetryText,
		Traces:     telemetry.Traces(p.opts.traces),
		Prometheus: p.opts.http != "", Getenv: p.getenv, Logger: p.log,
	})
	if err != nil {
		return cli.Exit(cli.CodeUsage, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWait)
		defer cancel()
		if e := flush(ctx); e != nil {
			p.log.Warn("the last spans and metrics were not sent", "error", e)
		}
	}()
	tel.SetGlobal() // for handlers' own spans and the exporters' errors
	cfg.Observer = tel
	page, err := openPage(ctx, p.opts.http, tel.Metrics(), p.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.close()) }()
	p.own.add(page.URL())
	return p.work(ctx, cfg, page, ready)
}

// needsNATS says that one of the roles takes or sends messages.
func needsNATS(roles []quipu.Role) bool {
	return slices.ContainsFunc(roles, func(r quipu.Role) bool {
		return r != quipu.RoleSchedule && r != quipu.RoleRetention
	})
}

func (p *process) work(ctx context.Context, cfg quipu.Config, page *page, ready func(url string) error) (err error) {
	rt, err := p.open(ctx, cfg)
	if err != nil {
		return err
	}
	defer rt.Close()
	closeConsole, err := p.openConsole(ctx, rt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeConsole()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running := make(chan error, 1)
	go func() { running <- rt.Run(ctx) }()
	page.asks(rt.Check)
	select {
	case <-rt.Ready():
	case <-ctx.Done():
	case err := <-running:
		running <- err // await handles it
	}
	if url := page.URL(); url != "" {
		p.log.Info("serves http", "url", url)
	}
	if ready != nil {
		if err := ready(page.URL()); err != nil {
			cancel()
			return errors.Join(err, p.await(ctx, running))
		}
	}
	var watching sync.WaitGroup
	if p.watch {
		watching.Go(func() { p.watchFlows(ctx, rt) })
	}
	err = p.await(ctx, running)
	cancel()
	watching.Wait()
	return err
}

// await waits for the end of ctx and then, for a bounded time, for the drain (T10).
func (p *process) await(ctx context.Context, running <-chan error) error {
	select {
	case err := <-running:
		if ctx.Err() == nil && err == nil {
			return errors.New("the runtime ended by itself")
		}
		return err
	case <-ctx.Done():
	}
	p.log.Info("drains", "cause", context.Cause(ctx), "at_most", p.opts.drain+drainSlack)
	timer := time.NewTimer(p.opts.drain + drainSlack)
	defer timer.Stop()
	select {
	case err := <-running:
		if err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("drain: %w", err)
		}
		return nil
	case <-timer.C:
		return cli.Exitf(codeDrain, "the drain did not end within %s: what is under way comes again elsewhere", p.opts.drain+drainSlack)
	}
}
