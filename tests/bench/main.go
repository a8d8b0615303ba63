package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"

	"github.com/quipu-journal/quipu/dev"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := 0
	do := run
	if config := os.Getenv(workerVar); config != "" {
		do = func(ctx context.Context) error { return workerProcess(ctx, config) }
	}
	if err := do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 1
	}
	stop()
	os.Exit(code)
}

// options scale the run.
type options struct {
	scale   float64
	backlog int
	profile string
	long    int
	only    string
}

func run(ctx context.Context) error {
	var o options
	flag.Float64Var(&o.scale, "scale", 1, "multiplies the number of jobs")
	flag.IntVar(&o.backlog, "backlog", 100_000, "jobs of the backlog run; 0 leaves it out")
	flag.IntVar(&o.long, "long", 10_000, "steps of the long job; 0 leaves it out")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of W10 here")
	flag.StringVar(&o.only, "only", "", "run only this part: floors, w1, w10, w100, tx, function, protocol, kill, long or backlog")
	flag.Parse()
	dir, err := os.MkdirTemp("", "quipu-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the database's user passes it
		return err
	}
	b, err := newBench(ctx, dir, o)
	if err != nil {
		return err
	}
	defer b.close()
	return b.all(ctx)
}

// newBench starts the servers.
func newBench(ctx context.Context, dir string, o options) (*bench, error) {
	pg, err := dev.StartPostgres(ctx, dir+"/postgres", dev.PostgresOptions{
		Install: true, Databases: []string{"quipu"},
		Settings: map[string]string{"shared_buffers": "512MB", "max_wal_size": "4GB", "wal_keep_size": "2GB", "max_connections": "100"},
	})
	if err != nil {
		return nil, err
	}
	ns, err := dev.StartNATS(ctx, dir+"/nats", dev.NATSOptions{})
	if err != nil {
		_ = pg.Stop(dev.StopImmediate)
		return nil, err
	}
	return &bench{options: o, pg: pg, nats: ns, dsn: pg.DSN("quipu")}, nil
}

func (b *bench) close() {
	_ = b.nats.Shutdown()
	_ = b.pg.Stop(dev.StopImmediate) // nothing of it is kept
}

// profiled runs f under the CPU profile, if one was asked for.
func (b *bench) profiled(f func() error) error {
	if b.profile == "" {
		return f()
	}
	out, err := os.Create(b.profile)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return f()
}
