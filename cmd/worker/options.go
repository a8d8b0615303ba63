package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/natsflags"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/telemetry"
)

// options are the flags of worker and worker dev.
type options struct {
	postgres, nats string // only of worker, not of worker dev
	over           natsflags.Flags

	space, flows, http, log, level, name     string
	archive, secrets                         string
	httpAllow, httpDeny                      []string
	noBuiltins                               bool
	roles, accept                            []string
	lanes, concurrency, committers, maxBatch int
	hot                                      int
	resend, lease, ackWait, drain, wait      time.Duration
	noMigrate, telemetryText                 bool
	traces                                   string
}

// defineServers defines the flags of a worker that connects to running servers.
func (o *options) defineServers(f *pflag.FlagSet) {
	f.StringVar(&o.postgres, "postgres", "", "connection string of the database, as a `DSN`; required, unless there is a worker dev")
	f.StringVar(&o.nats, "nats", "", "`URL` of the NATS servers, comma-separated; required for the roles engine and workers")
	f.String("dev", "", "data `DIR` of a running worker dev, whose servers and space are used; default: .quipu, if one runs there")
	f.BoolVar(&o.noMigrate, "no-migrate", false, "leave the schema alone: another role owns it")
	f.DurationVar(&o.wait, "wait", defaultWait, "`TIME` to wait for the servers at the start; 0: do not wait")
	f.StringSliceVar(&o.accept, "accept", nil, "`LIST` of checks of the servers that are accepted although they fail, such as fsync-off of a managed database")
	cli.FromEnv(f, "postgres", "nats", "dev", "no-migrate", "wait", "accept")
	o.over.DefineConnection(f)
	o.over.DefineStreams(f)
}

// readEnv reads the variables, and takes the servers and the space of the `worker dev` that is named.
// Without any, what is missing is said later.
func readEnv(cmd *cobra.Command, getenv func(string) string) error {
	env, err := cli.ReadEnv(cmd, getenv)
	if err != nil {
		return err
	}
	if _, err = cli.UseDev(cmd, env); errors.Is(err, cli.ErrNoDatabase) {
		return nil
	}
	return cli.Exit(cli.CodeUsage, err)
}

func (o *options) define(f *pflag.FlagSet) {
	f.StringVar(&o.space, "space", quipu.DefaultSpace, "`NAME` of the space")
	f.StringVar(&o.flows, "flows", "", "`DIR` with flows to deploy at start, searched with its subdirectories")
	f.StringSliceVar(&o.roles, "roles", allRoles(), "what this process does, a `LIST` of engine, workers, schedule (starts jobs by the clock) and retention (removes closed jobs whose time has passed)")
	f.StringVar(&o.http, "http", "", "`ADDRESS` of the HTTP server, such as :9090, which is on this machine alone, or 0.0.0.0:9090; port 0 is any free one; default: none")
	f.StringVar(&o.archive, "archive", "", "`DIR` for the journals of expired jobs: one file for each partition, written before it is dropped; default: no archive")
	f.StringVar(&o.name, "name", "", "`NAME` of this process in the journal; default: host and process id")
	f.IntVar(&o.concurrency, "concurrency", 0, "`N` handlers at a time, per topic; default: 64")
	f.IntVar(&o.committers, "committers", 0, "`N` transactions at a time; default: 2")
	f.IntVar(&o.maxBatch, "max-batch", 0, "`N` messages in a transaction at most; default: 500")
	f.IntVar(&o.hot, "hot-mib", 64, "`N` MiB of memory for the states of jobs, so that their next messages need no load; 0: none")
	f.IntVar(&o.lanes, "lanes", 0, "`N` lanes of the space, the same in all its processes; default: 16")
	f.DurationVar(&o.resend, "resend", 0, "`TIME` after which a message that nobody has handled is looked for, and sent again if it is lost; default: 3s")
	f.DurationVar(&o.lease, "lease", 0, "`TIME` after which other processes take over the work of this one when it is silent; it renews its session three times in that time; default: 3s")
	f.DurationVar(&o.ackWait, "ack-wait", 0, "`TIME` after which NATS gives a message of a silent process to another; default: 3s")
	f.DurationVar(&o.drain, "drain", work.DefaultDrain, "`TIME` that running handlers have to finish when the process ends")
	f.BoolVar(&o.noBuiltins, "no-builtins", false, "do not serve the built-in handlers http, echo, sleep and fail")
	f.StringSliceVar(&o.httpAllow, "http-allow", nil, "all that the handler http may call, a `LIST` of host names, IP addresses and CIDRs; default: everything but link-local, metadata, multicast and unspecified addresses")
	f.StringSliceVar(&o.httpDeny, "http-deny", nil, "what the handler http may not call, also if it is allowed: a `LIST` of host names, IP addresses and CIDRs")
	f.StringVar(&o.secrets, "secrets", "", "`DIR` with the secrets of the handler http: NAME is the value, NAME.hosts the hosts that it is sent to; default: the variables QUIPU_SECRET_NAME and QUIPU_HOSTS_NAME")
	f.StringVar(&o.log, "log", "text", "`FORMAT` of the log on standard error: text or json")
	f.StringVar(&o.level, "log-level", "info", "least `LEVEL` that is logged: debug, info, warn or error")
	f.StringVar(&o.traces, "trace", string(telemetry.TracesJournal), "`SOURCE` of spans, if a collector is named: from-journal (the tree of a job when it has ended), live (also when each message was committed and published) or off")
	f.BoolVar(&o.telemetryText, "trace-errors", false, "put the text of errors into spans; it may hold users' data")
	cli.FromEnv(f, "space", "flows", "roles", "http", "archive", "name", "concurrency", "committers", "max-batch", "hot-mib", "lanes",
		"resend", "lease", "ack-wait", "drain", "no-builtins", "http-allow", "http-deny", "secrets", "log", "log-level", "trace", "trace-errors")
}

func allRoles() (names []string) {
	for _, r := range quipu.AllRoles() {
		names = append(names, string(r))
	}
	return names
}

// logger returns a logger to w, as the flags say.
func (o *options) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.level)); err != nil {
		return nil, cli.Exitf(cli.CodeUsage, "--log-level %.40q: use debug, info, warn or error", o.level)
	}
	with := &slog.HandlerOptions{Level: level}
	switch o.log {
	case "text":
		return slog.New(slog.NewTextHandler(w, with)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, with)), nil
	}
	return nil, cli.Exitf(cli.CodeUsage, "--log %.40q: use text or json", o.log)
}

// check returns an error for the first flag with a bad value.
func (o *options) check() error {
	for _, r := range o.roles {
		if !slices.Contains(allRoles(), r) {
			return cli.Exitf(cli.CodeUsage, "--roles %.40q: use some of %s", r, strings.Join(allRoles(), ", "))
		}
	}
	if err := o.limits(); err != nil {
		return err
	}
	if traces := []string{
		string(telemetry.TracesJournal), string(telemetry.TracesLive), string(telemetry.TracesOff),
	}; o.traces != "" && !slices.Contains(traces, o.traces) {
		return cli.Exitf(cli.CodeUsage, "--trace %.40q: use one of %s", o.traces, strings.Join(traces, ", "))
	}
	if _, err := o.over.Options(); err != nil {
		return err
	}
	if err := o.checkSecrets(); err != nil {
		return err
	}
	if o.http == "" {
		return nil
	}
	addr, err := listenOn(o.http)
	o.http = addr
	return err
}

// limits checks numbers and times that the runtime would refuse only after the servers were asked.
// Zero is the default.
func (o *options) limits() error {
	fault := func(flag string, err error) error { return cli.Exitf(cli.CodeUsage, "--%s %w", flag, err) }
	for _, f := range []struct {
		flag, field string
		n           int
	}{
		{"concurrency", "Concurrency", o.concurrency},
		{"committers", "Committers", o.committers},
		{"max-batch", "MaxBatch", o.maxBatch},
		{"hot-mib", "HotMiB", o.hot},
		{"lanes", "Lanes", o.lanes},
	} {
		if err := engine.CheckNumber(f.field, f.n); err != nil {
			return fault(f.flag, err)
		}
	}
	for _, f := range []struct {
		flag, field string
		d           time.Duration
	}{
		{"resend", "Resend", o.resend},
		{"lease", "Lease", o.lease},
		{"ack-wait", "AckWait", o.ackWait},
		{"drain", "Drain", o.drain},
		{"wait", "Wait", o.wait},
	} {
		if err := engine.CheckTime(f.field, f.d); err != nil {
			return fault(f.flag, err)
		}
	}
	return nil
}

// listenOn returns the address with its host filled in: what names no host is for this machine
// alone.
func listenOn(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", cli.Exit(cli.CodeUsage, fmt.Errorf("--http: %w: use an address such as 127.0.0.1:9090 or 0.0.0.0:9090", err))
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}
