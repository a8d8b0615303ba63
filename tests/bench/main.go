package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu/internal/dev"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if config := os.Getenv(childVar); config != "" {
		err = runChild(ctx, config, os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	scale    float64
	only     string
	plot     string
	postgres string
}

// part is what -only names: some lines of the report.
type part struct {
	name string
	run  func(*bench, context.Context) error
}

func parts() []part {
	return []part{
		{"floors", (*bench).floors},
		{"w1", (*bench).w1s},
		{"w10", (*bench).w10s},
		{"early", (*bench).early},
		{"fan", (*bench).fan},
		{"function", (*bench).functions},
		{"signals", (*bench).signals},
		{"trees", (*bench).trees},
		{"long", (*bench).long},
		{"steady", (*bench).steady},
		{"retention", (*bench).retention},
		{"processes", (*bench).processes},
		{"kill", (*bench).kill},
		{"costs", (*bench).costs},
		{"idle", (*bench).idle},
		{"backlog", (*bench).drained},
		{"console", (*bench).console},
		{"worst", (*bench).worsts},
		{"plot", (*bench).plots},
	}
}

func names() (out []string) {
	for _, p := range parts() {
		out = append(out, p.name)
	}
	return out
}

// parse reads the flags.
func parse(args []string, out io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	f.Float64Var(&o.scale, "scale", 1, "multiplies the number of jobs, and the times of what is measured by time")
	f.StringVar(&o.only, "only", "", "run only these parts, by commas: "+strings.Join(names(), ", "))
	f.StringVar(&o.plot, "plot", "", "write throughput.svg and latency.svg into this directory")
	f.StringVar(&o.postgres, "postgres", "", "use this database instead of a private Postgres, as a superuser. Lines whose aim is a multiple of a\n"+
		"peer need a run of that peer, which this program does not contain, on the same Postgres in its turn")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	for _, name := range o.parts() {
		if !slices.Contains(names(), name) {
			return o, fmt.Errorf("-only %s: the parts are %s", name, strings.Join(names(), ", "))
		}
	}
	if o.only != "" && (o.plot != "") != slices.Contains(o.parts(), "plot") {
		return o, errors.New("the part plot needs -plot DIR, and -plot DIR the part plot")
	}
	return o, nil
}

// parts are those that -only names, or all.
func (o *options) parts() []string {
	if o.only == "" {
		return names()
	}
	return strings.Split(o.only, ",")
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "quipu-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the database's user passes it
		return err
	}
	b := &bench{options: o, out: out, id: strconv.FormatInt(time.Now().Unix(), 36), w10: map[int]*result{}}
	if err := b.serve(ctx, dir); err != nil {
		return err
	}
	defer b.close()
	for _, p := range parts() {
		if !slices.Contains(o.parts(), p.name) {
			continue
		}
		if err := p.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// serve starts the servers, and says on what the run is.
func (b *bench) serve(ctx context.Context, dir string) (err error) {
	if b.dsn = b.postgres; b.dsn == "" {
		b.pg, err = dev.StartPostgres(ctx, dir+"/postgres", dev.PostgresOptions{
			Install: true, Databases: []string{"quipu"},
			Settings: map[string]string{"shared_buffers": "512MB", "max_wal_size": "4GB", "wal_keep_size": "2GB", "max_connections": "200"},
		})
		if err != nil {
			return err
		}
		b.dsn, b.log = b.pg.DSN("quipu"), dir+"/postgres/postgres.log"
	}
	if b.nats, err = dev.StartNATS(ctx, dir+"/nats", dev.NATSOptions{}); err == nil {
		b.machine, err = machine(ctx, b.dsn)
	}
	if err != nil {
		b.close()
		return err
	}
	_, err = fmt.Fprintf(b.out, "%s\n\n", b.machine)
	return err
}

func (b *bench) close() {
	if b.nats != nil {
		_ = b.nats.Shutdown()
	}
	if b.pg != nil {
		_ = b.pg.Stop(dev.StopImmediate) // nothing of it is kept
	}
}

// sql runs one statement on a connection of its own, and scans its row where there is
// somewhere to scan it to.
func sql(ctx context.Context, dsn, statement string, into ...any) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if len(into) > 0 {
		return conn.QueryRow(ctx, statement).Scan(into...)
	}
	_, err = conn.Exec(ctx, statement)
	return err
}
