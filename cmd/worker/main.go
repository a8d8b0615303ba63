package main

import (
	"context"
	_ "time/tzdata" // so that schedules know their time zones on every machine

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// Exit codes beside those of package cli.
const (
	codeFlows     = 3 // flows with faults, or a version that is deployed with other content
	codePreflight = 4 // a setting would break the promise (4.4)
	codeInUse     = 5 // another `worker dev` has the directory
	codeDrain     = 6 // the drain did not end in time (T10)
)

// exitCodes are those of a command; more are its own.
func exitCodes(more string) string {
	return `Exit codes:

- 0: ended by SIGTERM or SIGINT, drained
- 1: a server is away and did not come within --wait, the database refuses the login or is not there, or the runtime failed
- 2: flags or configuration
- 3: a flow has faults, or its version is deployed with other content; every fault of every file is printed with its place, and then nothing is deployed
- 4: preflight: a setting of Postgres or NATS would break the promise; each is named
` + more + `- 6: the drain did not end in time; what was under way comes again elsewhere
- 130: ended by SIGTERM or SIGINT before it took work

A second SIGTERM or SIGINT ends the process at once.`
}

func main() { cli.Main(run) }

func run(ctx context.Context, args []string, s cli.Streams) int {
	return cli.Execute(ctx, newCommand(s), args, s)
}

func newCommand(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Take part in the work of a space",
		Long: `Take part in the work of a space until SIGTERM or SIGINT. The process is an engine,
which decides and commits; a worker with the built-in handlers http, echo, sleep and
fail (not with --no-builtins); or both (--roles).

At the start it waits for its servers (--wait), checks their settings and prints what
it found. It refuses to start (exit code 4) on a setting with which committed work could
be lost. Then it deploys the flows in the flows directory (.yaml, .yml, .json). New jobs
take a version that is new to the space; a version that is there already changes nothing.

The HTTP server (--http) has /metrics for Prometheus, /healthz and /readyz. They give
nothing away, and need no login. Traces and metrics also go to
OTEL_EXPORTER_OTLP_ENDPOINT if that is set.

` + exitCodes(""),
		Example: `  worker --postgres postgres://quipu@db/quipu --nats nats://nats:4222 --space shop --flows ./flows
  worker --roles workers --concurrency 200`,
		Args: cli.Args(0, 0),
	}
	o.define(cmd.Flags())
	o.defineServers(cmd.Flags())
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		if err := readEnv(cmd, s.Getenv); err != nil {
			return err
		}
		p, err := newProcess(o, s)
		if err != nil {
			return err
		}
		return p.serve(cmd.Context(), p.config(), nil)
	})
	cmd.AddCommand(newDevCommand(s))
	return cmd
}
