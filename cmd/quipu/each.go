package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

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
		if err := a.outcome(cmd, &code, do(key)); err != nil {
			return err
		}
	}
	return code.err()
}

// outcome reports an error about one job; another one is returned.
func (a *app) outcome(cmd *cobra.Command, code *worst, err error) error {
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
	return nil
}

// maxActs bounds the jobs that a command acts on at a time. Those of one moment share commits.
const maxActs = 64

// many is as each, for acts on maxActs jobs at a time. What say prints stands in the order of the keys.
func many[T any](
	a *app, cmd *cobra.Command, keys []string, act func(key string) (T, error), say func(key string, done *T) error,
) error {
	var code worst
	for keys := range slices.Chunk(keys, maxActs) {
		done, errs := make([]T, len(keys)), make([]error, len(keys))
		var acts sync.WaitGroup
		for i, key := range keys {
			acts.Go(func() { done[i], errs[i] = act(key) })
		}
		acts.Wait()
		var stop error
		for i, err := range errs {
			if err == nil {
				err = say(keys[i], &done[i])
			}
			stop = cmp.Or(stop, a.outcome(cmd, &code, err)) // what was done is told all the same
		}
		if stop != nil {
			return stop
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
