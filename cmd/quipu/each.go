package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal"
)

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
				fmt.Fprintf(a.streams.Err, "%s: %v\n", cmd.CommandPath(), err)
			}
			code.add(c)
		default:
			return err
		}
	}
	return code.err()
}

// find returns the job that has the key, or else the job with that id, so that earlier
// generations of a key are found.
func find(ctx context.Context, rt *quipu.Runtime, key string) (quipu.Job, error) {
	job, err := rt.Find(ctx, key)
	if !errors.Is(err, quipu.ErrNotFound) {
		return job, err
	}
	id, bad := journal.ParseJobID(key)
	if bad != nil {
		return job, err
	}
	v, bad := rt.Job(ctx, quipu.Job{ID: id})
	if bad != nil {
		return job, err
	}
	return v.Job, nil
}

// maxCompletions bounds the keys that shell completion offers.
const maxCompletions = 50

// completes lets the shell complete the keys of jobs, the newest first.
func (a *app) completes(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, begun string) (keys []string, _ cobra.ShellCompDirective) {
		err := a.with(cmd, reads, func(ctx context.Context, rt *quipu.Runtime) error {
			jobs, err := rt.Jobs(ctx, quipu.JobFilter{Prefix: begun, Limit: maxCompletions})
			for i := range jobs {
				keys = append(keys, plain(jobs[i].Job.Key))
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
