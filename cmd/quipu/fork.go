package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

func (a *app) forkCommand() *cobra.Command {
	var at int64
	var as string
	var by decision
	cmd := &cobra.Command{
		Use:   "fork KEY",
		Short: "Begin a job that goes on from an entry of another",
		Long: `Begin a job under a key of its own (--as) that goes on from an entry of the journal of
another (--at), with the same version of the flow and the same input. It takes over every
result that stood there at the entry, and does the rest itself: its effects have keys of
their own, so a receiver takes them for other calls. The other job stays as it is, and may
be open. The journal of each names the other.

The numbers of entries are those of ` + "`quipu log --digits`" + `; ` + "`quipu replay --at`" + ` shows what
stood at one. An entry is refused at which a handler was under way that has recorded
effects, because nobody can say which of them it had done by then; the error says which
entries will do. A job that resumes another, a fork, and a flow with identity: strict cannot be forked.`,
		Example: "  quipu fork order-42 --at 7 --as order-42-again --reason \"with the mended handler\"",
		Args:    cli.Args(1, 1),
	}
	cmd.Flags().Int64Var(&at, "at", 0, "`SEQ` of the entry, from 1; required")
	cmd.Flags().StringVar(&as, "as", "", "`KEY` of the new job; required")
	by.define(a, cmd)
	a.completes(cmd)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		if at < 1 || as == "" {
			return cli.Exitf(cli.CodeUsage, "give the entry to go on from (--at, from 1) and the key of the new job (--as)")
		}
		by.who = a.whoOf(by)
		return a.ask(cmd, starts, func(ctx context.Context, from source) error {
			of, err := from.Find(ctx, args[0])
			if err != nil {
				return err
			}
			job, err := from.Fork(ctx, of.ID, at, as, by)
			switch {
			case errors.Is(err, quipu.ErrFork):
				return cli.Exit(codeRefused, err)
			case err != nil:
				return err
			}
			return a.say(map[string]any{"key": as, "job": job.Job, "fork_of": args[0], "at": at},
				"%s goes on from entry %d of %s as job %s\n", plain(as), at, plain(args[0]), job.Job)
		})
	})
	return cmd
}
