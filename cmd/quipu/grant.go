package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/transport"
)

// binder binds the logins of workers to topics.
type binder interface {
	GrantWorker(ctx context.Context, login string, topics []string) error
	RevokeWorker(ctx context.Context, login string, topics []string) error
	WorkerTopics(ctx context.Context) (map[string][]string, error)
}

func (a *app) grantCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grant",
		Short: "Bind the login of a worker to topics",
		Long:  `Bind the login of a worker to topics.`,
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "worker LOGIN TOPIC...",
		Short: "Make a login of the database a worker of these topics",
		Long: `Make a login of the database a worker of the space, for these topics beside those that
it has. It reads the requests and effects of its topics and no others, writes their
effects, and changes nothing else. The login and the roles must be there: CREATE ROLE,
quipu migrate --roles. It needs the rights of the owner of the space.`,
		Example: "  quipu grant worker payments pay.charge pay.refund",
		Args:    cli.Args(2, -1),
		RunE:    a.bindWorker(binder.GrantWorker),
	})
	return cmd
}

func (a *app) revokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke",
		Short: "Take topics from the login of a worker",
		Long:  `Take topics from the login of a worker.`,
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "worker LOGIN [TOPIC...]",
		Short: "Take these topics from the login of a worker, or all",
		Long: `Take these topics from the login of a worker. Without topics it loses all of them, and is
no worker of the space any more. What it has begun is done again elsewhere. It needs the
rights of the owner of the space.`,
		Example: "  quipu revoke worker payments pay.refund",
		Args:    cli.Args(1, -1),
		RunE:    a.bindWorker(binder.RevokeWorker),
	})
	return cmd
}

// bindWorker changes the topics of a login, and prints those that it has then.
func (a *app) bindWorker(change func(b binder, ctx context.Context, login string, topics []string) error) func(*cobra.Command, []string) error {
	return cli.Run(func(cmd *cobra.Command, args []string) error {
		login, topics := args[0], args[1:]
		for _, topic := range topics {
			if err := transport.ValidateTopic(topic); err != nil {
				return cli.Exit(cli.CodeUsage, err)
			}
		}
		return a.with(cmd, writes, func(ctx context.Context, rt *quipu.Runtime) error {
			b := below.Of(rt).(binder)
			if err := change(b, ctx, login, topics); err != nil {
				return err
			}
			all, err := b.WorkerTopics(ctx)
			if err != nil {
				return err
			}
			has := slices.Clone(all[login])
			if a.json() {
				return a.object(map[string]any{"login": login, "topics": append([]string{}, has...)})
			}
			if len(has) == 0 {
				_, err = fmt.Fprintf(a.streams.Out, "login %s has no topics\n", login)
				return err
			}
			_, err = fmt.Fprintf(a.streams.Out, "login %s has the topics %s\n", login, strings.Join(has, ", "))
			return err
		})
	})
}
