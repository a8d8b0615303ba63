package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/natsflags"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/telemetry"
	"github.com/quipu-journal/quipu/transport"
)

// app has what the commands share: streams, connection flags, the output format.
type app struct {
	streams                            cli.Streams
	postgres, nats, space, dev, output string
	api                                string
	over                               natsflags.Flags
	accept                             []string
}

// need says what a command does with its connection.
type need uint8

const (
	reads    need = iota // takes the schema as it is
	looks                // only reads, also in another database than the space's (S13)
	writes               // also changes what is there
	watches              // also learns of ends of jobs, by NATS where it is known
	serves               // writes, and asks NATS where it is known
	starts               // writes, and also publishes, and counts, what it sends
	makes                // makes the space, or migrates its schema
	recovers             // accepts another database; asks NATS where it is known
)

// configure completes the flags of cmd from the environment and dev.json.
func (a *app) configure(cmd *cobra.Command) error {
	env, err := cli.ReadEnv(cmd, a.streams.Getenv)
	if err != nil {
		return err
	}
	given := func(name string) bool { return cmd.Flags().Changed(name) && !env[name] }
	// export has its own --output, so the format keeps its default there.
	if !slices.Contains([]string{"table", "json"}, a.output) {
		return cli.Exitf(cli.CodeUsage, "-o %.40q: use table or json", a.output)
	}
	if a.nats != "" { // also where this command does not use it: it is a slip in any case
		if err := transport.CheckURL(a.nats); err != nil {
			return cli.Configuration(err)
		}
	}
	if a.api != "" && !given("api") && (given("postgres") || given("dev")) {
		a.api = "" // a flag comes before the environment
	}
	if a.api != "" {
		return nil
	}
	// Where nothing of a `worker dev` is used, it is no advice either.
	if a.dev, err = cli.UseDev(cmd, env); errors.Is(err, cli.ErrNoDatabase) {
		return cli.Exit(cli.CodeUsage, err)
	}
	return err
}

// run makes the RunE of a command that needs a runtime for all it does.
func (a *app) run(
	what need, f func(ctx context.Context, rt *quipu.Runtime, args []string) error,
) func(*cobra.Command, []string) error {
	return cli.Run(func(cmd *cobra.Command, args []string) error {
		return a.with(cmd, what, func(ctx context.Context, rt *quipu.Runtime) error { return f(ctx, rt, args) })
	})
}

// with configures, and runs f with a connected runtime.
func (a *app) with(cmd *cobra.Command, what need, f func(ctx context.Context, rt *quipu.Runtime) error) error {
	if err := a.configure(cmd); err != nil {
		return err
	}
	if a.api != "" {
		return cli.Exitf(cli.CodeUsage, "%s needs the database: give --postgres or --dev. By --api go %s", cmd.CommandPath(), remotely)
	}
	return a.connect(cmd, what, f)
}

// connect runs f with a runtime that is connected as configure found.
func (a *app) connect(cmd *cobra.Command, what need, f func(ctx context.Context, rt *quipu.Runtime) error) error {
	cfg := quipu.Config{
		Postgres: a.postgres, Space: a.space, NoMigrate: what != makes, NATSWait: -1, Build: cli.Build(),
		Name: cmp.Or(a.user(), "quipu"), Accept: a.accept, Logger: slog.New(slog.DiscardHandler),
	}
	if what == watches || what == serves || what == starts || what == recovers {
		over, err := a.over.Options()
		if err != nil {
			return err
		}
		cfg.NATS, cfg.NATSOptions = a.nats, over
	}
	if what == recovers {
		cfg.NATSWait = 0
	} else {
		cfg.Roles = []quipu.Role{quipu.RoleSchedule} // none of those that need more than a client's rights on NATS
	}
	if what == starts || what == serves {
		tel, flush, err := telemetry.New(cmd.Context(),
			telemetry.Config{Service: "quipu", Version: cfg.Build, Space: a.spaceName(), Getenv: a.streams.Getenv})
		if err != nil {
			return cli.Exit(cli.CodeUsage, err)
		}
		cfg.Observer = tel
		defer a.flush(cmd.Context(), flush)
	}
	opened, err := below.Open(cmd.Context(), cfg, below.Mode{
		Reads:       what == reads || what == watches || what == looks,
		AnyDatabase: what == recovers || what == looks,
	})
	if err != nil {
		return a.explain(err)
	}
	rt := opened.(*quipu.Runtime)
	defer rt.Close()
	if err := below.Of(rt).Another(); err != nil && what == looks {
		fmt.Fprintln(a.streams.Err, "no process works here:", plain(err.Error()))
	}
	return a.explain(f(cmd.Context(), rt))
}

// flushWait bounds the sending of a command's telemetry: whoever started a job does not wait for a
// collector that is silent.
const flushWait = 500 * time.Millisecond

// flush sends what was counted. A failure does not affect the jobs.
func (a *app) flush(ctx context.Context, shutdown func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWait)
	defer cancel()
	err := shutdown(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintf(a.streams.Err, "the telemetry of this command was not sent: the collector (OTEL_EXPORTER_OTLP_ENDPOINT) did not answer within %v\n", flushWait)
	case err != nil:
		fmt.Fprintln(a.streams.Err, "the telemetry of this command was not sent:", err)
	}
}

// explain adds advice and the exit code to errors that need it.
func (a *app) explain(err error) error {
	if err == nil {
		return nil
	}
	if code := cli.Code(err); code != cli.CodeFailed {
		return err
	}
	if _, missing := errors.AsType[*postgres.NoSpaceError](err); missing {
		return err
	}
	if _, taken := errors.AsType[*postgres.TakenError](err); taken {
		return err
	}
	switch {
	case errors.Is(err, quipu.ErrConfig):
		return cli.Configuration(err)
	case errors.Is(err, store.ErrSchema):
		return fmt.Errorf("%w, or start a worker of this build on the space %s", err, a.spaceName())
	case errors.Is(err, store.ErrUnavailable) && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: look at the server and at the network to it: it may be overloaded, stopped, or cut off", err)
	case errors.Is(err, store.ErrUnavailable) && a.dev != "":
		return fmt.Errorf("%w: is the `worker dev` of %s still running?", err, a.dev)
	}
	return cli.Exit(codeOf(err), err)
}

func (a *app) spaceName() string {
	if a.space == "" {
		return quipu.DefaultSpace
	}
	return a.space
}

// codeOf returns the exit code for an error of the runtime.
func codeOf(err error) int {
	if _, ok := errors.AsType[*quipu.ConflictError](err); ok {
		return codeRefused
	}
	if _, ok := errors.AsType[*quipu.JobError](err); ok {
		return codeEnded
	}
	if _, ok := errors.AsType[flow.Faults](err); ok {
		return codeRefused
	}
	switch {
	case errors.Is(err, quipu.ErrInput), errors.Is(err, quipu.ErrKey), errors.Is(err, quipu.ErrRepair),
		errors.Is(err, store.ErrVersionTaken), errors.Is(err, store.ErrRejected), errors.Is(err, quipu.ErrRefused):
		return codeRefused
	case errors.Is(err, quipu.ErrNotFound), errors.Is(err, quipu.ErrTombstone):
		return codeNotFound
	case errors.Is(err, store.ErrStale):
		return codeStale
	}
	return cli.Code(err)
}

// named defines the flag by which somebody says who asks.
func (a *app) named(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "who", "", "`NAME` of who asks, for the journal; default: the user; with --api it is that of the token")
}

// who returns the person's name for the journal (audit only), or "unknown".
func (a *app) who() string { return cmp.Or(a.user(), "unknown") }

// user returns the name of the person as the environment has it, or "".
func (a *app) user() string { return cmp.Or(a.streams.Getenv("USER"), a.streams.Getenv("LOGNAME")) }
