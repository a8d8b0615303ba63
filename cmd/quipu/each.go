package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// ofKeys makes cmd one that takes keys of jobs, as arguments or from standard input, and runs on them.
func (a *app) ofKeys(cmd *cobra.Command, run func(cmd *cobra.Command, keys []string) error) *cobra.Command {
	a.completes(cmd)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		keys, err := a.keys(args)
		if err != nil {
			return err
		}
		return run(cmd, keys)
	})
	return cmd
}

// each calls do for each key. An error about one job (not found, refused, ended) is reported and
// does not stop the others.
func (a *app) each(cmd *cobra.Command, keys []string, do func(key string) error) error {
	var code worst
	for _, key := range keys {
		err := do(key)
		switch c := codeOf(err); {
		case err == nil:
		case c == codeNotFound || c == codeRefused || c == codeStale:
			if !errors.Is(err, cli.ErrReported) {
				fmt.Fprintf(a.streams.Err, "%s: %s\n", cmd.CommandPath(), cli.Harmless(err))
			}
			code.add(c)
		default:
			return err
		}
	}
	return code.err()
}

// maxCompletions bounds the keys that shell completion offers.
const maxCompletions = 50

// completes lets the shell complete the keys of jobs, the newest first.
func (a *app) completes(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, begun string) (keys []string,
		_ cobra.ShellCompDirective,
	) {
		err := a.ask(cmd, reads, func(ctx context.Context, from source) error {
			page, err := from.Jobs(ctx, quipu.JobFilter{Prefix: begun, Limit: maxCompletions})
			for i := range page.Jobs {
				keys = append(keys, plain(page.Jobs[i].Key))
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
