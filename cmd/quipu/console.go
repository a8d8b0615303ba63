package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/serve"
)

func (a *app) consoleCommand() *cobra.Command {
	var f serve.Flags
	var trace string
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve the web page and the HTTP API of the space",
		Long: `Serve the web page and the HTTP API of the space until SIGTERM or SIGINT. The page shows
jobs with their graph, timeline, ledgers, effects and journal, now and at any entry; topics,
processes, flows, schedules, dead letters; and takes the acts on them, one or many.
docs/console.md says what each page shows, docs/api.md what stands below /api/v1.

On a loopback address nobody is asked who they are: whoever reaches it acts as the user who
runs it, and nobody who reached it by another name is answered. On any other address a
caller needs a token (quipu token create; a browser takes it as the password), or comes
from a proxy that names them. What is decided is journaled with their name.`,
		Example: "  quipu console --dev .quipu\n" +
			"  quipu console --http 0.0.0.0:8400 --tls-cert server.pem --tls-key server.key\n" +
			"  quipu console --http 0.0.0.0:8400 --proxy-from 10.1.0.0/16 --proxy-header X-Forwarded-User --proxy-role-header X-Quipu-Role\n" +
			"  quipu console --trace-url 'http://127.0.0.1:16686/trace/{trace}'",
		Args: cli.Args(0, 0),
	}
	f.Define(cmd.Flags())
	cmd.Flags().StringVar(&trace, "trace-url", "", "`URL` of a trace in a tracing system, with {trace} in the place of its id; default: no links to traces")
	cmd.RunE = a.run(serves, func(ctx context.Context, rt *quipu.Runtime, _ []string) error {
		err := a.console(ctx, rt, &f, trace)
		if errors.Is(err, serve.ErrFlags) {
			err = cli.Exit(cli.CodeUsage, err)
		}
		return err
	})
	return cmd
}

// console serves until ctx ends.
func (a *app) console(ctx context.Context, rt *quipu.Runtime, f *serve.Flags, trace string) error {
	who, err := f.Access(a.who())
	if err != nil {
		return err
	}
	secure, err := f.TLS()
	if err != nil {
		return err
	}
	site := serve.Site{
		Build: cli.Build(), Space: a.spaceName(), Trace: trace, Access: who,
		Logger: slog.New(slog.NewTextHandler(a.streams.Err, nil)),
	}
	s, err := serve.Listen(ctx, f.Addr, secure, site.Handler(rt), site.Logger)
	if err != nil {
		return fmt.Errorf("%w: --http: %w", serve.ErrFlags, err)
	}
	if f.InClear() {
		fmt.Fprintln(a.streams.Err, "without --tls-cert tokens cross the network in clear, unless a proxy before this server speaks TLS")
	}
	fmt.Fprintf(a.streams.Out, "console: %s\n", s.URL())
	select {
	case <-ctx.Done():
		return s.Close()
	case err := <-s.Done():
		return err
	}
}
