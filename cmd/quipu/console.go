package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/serve"
	"github.com/quipu-journal/quipu/console"
)

func (a *app) consoleCommand() *cobra.Command {
	var addr, trace string
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve the web page of the space",
		Long: `Serve the web page of the space until SIGTERM or SIGINT: jobs with their graph, timeline,
ledgers, effects and journal, now and at any entry; topics, processes, flows, schedules,
dead letters; and the acts on them, one or many. docs/console.md says what each page shows.

There is no login, so it listens on loopback only, and answers nobody who reached it by
another name. What is decided there is journaled with the name of the user who runs it.`,
		Example: "  quipu console --dev .quipu\n  quipu console --http 127.0.0.1:8400 --trace-url 'http://127.0.0.1:16686/trace/{trace}'",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&addr, "http", "127.0.0.1:8400", "loopback `ADDRESS` to listen on; port 0 is any free one")
	cmd.Flags().StringVar(&trace, "trace-url", "", "`URL` of a trace in a tracing system, with {trace} in the place of its id; default: no links to traces")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		return a.with(cmd, serves, func(ctx context.Context, rt *quipu.Runtime) error {
			return a.console(ctx, rt, addr, trace)
		})
	})
	return cmd
}

// console serves until ctx ends.
func (a *app) console(ctx context.Context, rt *quipu.Runtime, addr, trace string) error {
	h := console.New(rt, console.Config{
		Build: cli.Build(), Space: a.spaceName(), Who: a.who(), Trace: trace, Logger: slog.New(slog.NewTextHandler(a.streams.Err, nil)),
	})
	s, err := serve.Loopback(ctx, addr, h)
	if err != nil {
		return cli.Exit(cli.CodeUsage, fmt.Errorf("--http: %w", err))
	}
	fmt.Fprintf(a.streams.Out, "console: %s\n", s.URL())
	select {
	case <-ctx.Done():
		return s.Close()
	case err := <-s.Done():
		return err
	}
}
