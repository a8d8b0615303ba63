package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/dev"
)

// devOptions are the flags of worker dev alone.
type devOptions struct {
	data, pgBin            string
	postgresPort, natsPort int
	install, serversOnly   bool
	watch                  bool
	console                string
}

func newDevCommand(s cli.Streams) *cobra.Command {
	var o options
	var d devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "A worker with its own NATS and Postgres",
		Long: `Run a worker with servers of its own: an embedded NATS with JetStream, and a private
Postgres from the local binaries (also as root), with the settings of production. All
data is in one directory. A restart finds it there, and uses the same ports if they are
free.

With --watch the flow files are deployed as they are edited, and new jobs take the edit. An
edit that leaves the version as it is gets one of its own, such as 1-dev.3. The faults of an
edit are printed with their places; new jobs then go on with the version before.

It serves the console, the web page of the space, and prints its address (--console,
docs/console.md).

When it is ready it writes DIR/dev.json with "postgres", "nats", "http", "pid" and
"space", which ` + "`quipu --dev DIR`" + ` reads. It removes the file when it
ends. A second worker dev on the same directory is refused.

` + exitCodes("- 5: the directory is in use by another `worker dev`\n"),
		Example: `  worker dev --flows examples/hello
  worker dev --flows ./flows --watch
  worker dev --data /var/tmp/shop --flows ./flows --http 127.0.0.1:8080`,
		Args: cli.Args(0, 0),
	}
	f := cmd.Flags()
	f.StringVar(&d.data, "data", cli.DefaultDevDir, "`DIR` for all data")
	f.IntVar(&d.postgresPort, "postgres-port", 0, "`PORT` of Postgres on 127.0.0.1; default: the last one, or any free one")
	f.IntVar(&d.natsPort, "nats-port", 0, "`PORT` of NATS on 127.0.0.1; default: the last one, or any free one")
	f.StringVar(&d.pgBin, "postgres-bin", "", "`DIR` with initdb and postgres; default: looked for")
	f.BoolVar(&d.install, "install-postgres", false, "install Postgres with apt-get, as root, if it is missing")
	f.BoolVar(&d.serversOnly, "servers-only", false, "run the servers alone: workers are other processes")
	f.BoolVar(&d.watch, "watch", false, "deploy the files of --flows as they are edited")
	f.StringVar(&d.console, "console", consoleAddr, "loopback `ADDRESS` of the console, the web page of the space; empty: none; default: this one, or any free port if it is taken")
	cli.FromEnv(f, "data", "postgres-port", "nats-port", "postgres-bin", "install-postgres", "servers-only", "watch", "console")
	o.define(f)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		fromEnv, err := cli.ReadEnv(cmd, s.Getenv)
		if err == nil && d.serversOnly {
			err = checkServersOnly(cmd.Flags(), fromEnv)
		}
		if err != nil {
			return err
		}
		if d.watch && o.flows == "" {
			return cli.Exitf(cli.CodeUsage, "--watch: name the directory of the flow files (--flows)")
		}
		p, err := newProcess(o, s)
		if err != nil {
			return err
		}
		p.dev, p.watch = true, d.watch
		p.console.addr, p.console.given = d.console, cmd.Flags().Changed("console")
		return p.runDev(cmd.Context(), d, s.Out)
	})
	return cmd
}

// ofServers are the flags that mean something without a worker.
var ofServers = []string{
	"data", "postgres-port", "nats-port", "postgres-bin", "install-postgres", "servers-only", "space", "log", "log-level",
}

// checkServersOnly refuses flags that nobody would heed. The variables of a worker may be there for the
// worker processes; that of the console is for worker dev alone.
func checkServersOnly(f *pflag.FlagSet, fromEnv map[string]bool) error {
	var idle []string
	f.Visit(func(f *pflag.Flag) {
		given := !fromEnv[f.Name] || f.Name == "console"
		if given && f.Value.String() != "" && !slices.Contains(ofServers, f.Name) {
			idle = append(idle, "--"+f.Name)
		}
	})
	if idle == nil {
		return nil
	}
	return cli.Exitf(cli.CodeUsage, "--servers-only runs no worker and no console: leave out %s, which the worker processes take, "+
		"or `quipu console` for the page", strings.Join(idle, ", "))
}

// runDev runs the servers, and the process on them unless only the servers are wanted.
func (p *process) runDev(ctx context.Context, d devOptions, out io.Writer) (err error) {
	dir, err := filepath.Abs(d.data)
	if err != nil {
		return cli.Exit(cli.CodeUsage, err)
	}
	release, err := dev.Lock(dir)
	if locked, ok := errors.AsType[*dev.LockedError](err); ok {
		return cli.Exit(codeInUse, fmt.Errorf("another `worker dev` has the directory: %w", locked))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := cli.RemoveDevFile(dir); err != nil { // a killed process may have left one
		return err
	}
	servers, err := startServers(ctx, dir, d, p.log)
	if err != nil {
		return cmp.Or(ctx.Err(), err) // when ctx has ended, errors of servers that were just started do not matter
	}
	servers.alone = d.serversOnly
	defer func() { err = errors.Join(err, servers.stop()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go servers.watch(ctx, cancel)
	ready := func(url string) error { return p.tellReady(out, dir, servers, url) }
	defer func() { err = errors.Join(err, cli.RemoveDevFile(dir)) }()
	if d.serversOnly {
		if err := ready(""); err != nil {
			return err
		}
		<-ctx.Done()
	} else {
		cfg := p.config()
		cfg.Postgres, cfg.NATS, cfg.InProcess = servers.postgres.DSN(database), servers.nats.URL(), servers.nats
		p.own.add(cfg.Postgres, cfg.NATS)
		err = p.serve(ctx, cfg, ready)
	}
	if cause := context.Cause(ctx); errors.Is(cause, errPostgresEnded) {
		err = errors.Join(cause, err)
	}
	return err
}

// tellReady writes dev.json and prints what to do next. Only the file has the password.
func (p *process) tellReady(out io.Writer, dir string, s *servers, http string) error {
	file := cli.DevFile{
		Postgres: s.postgres.DSN(database), NATS: s.nats.URL(), HTTP: http, PID: os.Getpid(), Space: p.opts.space,
	}
	if err := file.Write(dir); err != nil {
		return err
	}
	flag := " --dev " + dir
	if standard, err := filepath.Abs(cli.DefaultDevDir); err == nil && standard == dir {
		flag = "" // quipu looks there by default
	}
	fmt.Fprintf(out, "worker dev is ready. Data: %s\n  nats      %s\n  postgres  127.0.0.1:%d, see %s\n", dir, s.nats.URL(), s.postgresPort(), cli.DevPath(dir))
	if http != "" {
		fmt.Fprintf(out, "  http      %s\n", http)
	}
	if p.console.url != "" {
		fmt.Fprintf(out, "  console   %s\n", p.console.url)
	}
	fmt.Fprintf(out, "\nNext, in another terminal:\n")
	switch {
	case s.alone:
		fmt.Fprintf(out, "  start your workers with QUIPU_DEV=%s, or `worker%s`: none runs here (docs/handlers.md)\n  quipu%s processes\n", dir, flag, flag)
	case len(p.flows) == 0:
		fmt.Fprintf(out, "  quipu%s deploy examples/hello/hello.yaml\n  quipu%s start hello hello-1 --input '{\"name\": \"Ada\"}'\n  quipu%s wait hello-1\n", flag, flag, flag)
	default:
		fmt.Fprintf(out, "  quipu%s flows\n  quipu%s start %s KEY --input @input.json\n  quipu%s ls\n", flag, flag, p.flows[0].flow.Name(), flag)
	}
	_, err := fmt.Fprintln(out, "\nCtrl-C stops it; the data stays.")
	return err
}
