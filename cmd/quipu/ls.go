package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// states are the job states that ls can filter by.
var states = []string{
	string(journal.JobOpen), string(journal.JobCompleted), string(journal.JobFailed), string(journal.JobInterrupted),
	string(journal.JobQuarantined), string(journal.JobExpired),
}

func (a *app) lsCommand() *cobra.Command {
	var f store.JobFilter
	var state string
	var limit int
	var keysOnly bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List jobs",
		Long:    `List jobs, newest first. An expired job is only a tombstone; --state expired lists those.`,
		Example: "  quipu ls --state open --flow order\n  quipu ls --state failed --keys | quipu show -",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&state, "state", "", "only jobs in this `STATE`: open, completed, failed, interrupted, quarantined or expired")
	cmd.Flags().StringVar(&f.Flow, "flow", "", "only jobs of this `FLOW`")
	cmd.Flags().StringVar(&f.Prefix, "prefix", "", "only jobs whose key begins with this `TEXT`")
	cmd.Flags().StringArrayVar(&f.Tags, "tag", nil, "only jobs with this `TAG`; may be repeated: with all of them")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most `N` jobs; 0 is all")
	cmd.Flags().BoolVarP(&keysOnly, "keys", "k", false, "print keys alone, one in a line")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		f.State = journal.JobState(state)
		if state != "" && !known(states, state) {
			return cli.Exitf(cli.CodeUsage, "--state %.40q: use one of %v", state, states)
		}
		if limit < 0 {
			return cli.Exitf(cli.CodeUsage, "--limit %d: use 0 or more", limit)
		}
		return a.with(cmd, looks, func(ctx context.Context, rt *quipu.Runtime) error {
			listed, err := a.list(ctx, rt, f, limit, keysOnly)
			if err == nil && listed == 0 && f.Flow != "" {
				err = deployedFlow(ctx, rt, f.Flow)
			}
			if err == nil && listed == 0 && !keysOnly && !a.json() {
				a.none("jobs")
			}
			return err
		})
	})
	return cmd
}

func known(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// deployedFlow returns an error if a flow, of which there are no jobs, is not deployed.
func deployedFlow(ctx context.Context, rt *quipu.Runtime, name string) error {
	all, err := versions(ctx, rt)
	if err != nil {
		return err
	}
	for v := range all {
		if v.name == name {
			return nil
		}
	}
	return cli.Exitf(codeNotFound, "--flow %.80q: no version of flow %.80s is deployed: `quipu flows` lists them", name, name)
}

// list prints a page at a time, so that memory does not grow with the list, and counts what it
// prints.
func (a *app) list(ctx context.Context, rt *quipu.Runtime, f store.JobFilter, limit int, keysOnly bool) (listed int, err error) {
	t := newTable(a.streams.Out, "KEY", "FLOW", "VERSION", "STATE", "OPEN", "STARTED", "TOOK")
	for limit == 0 || listed < limit {
		f.Limit = store.MaxPage // may be more than is left, since tombstones are skipped
		if limit > 0 && f.State != "" {
			f.Limit = min(limit-listed, store.MaxPage)
		}
		page, err := below.Of(rt).Jobs(ctx, f)
		if err != nil {
			return listed, err
		}
		for i := range page {
			if page[i].State == journal.JobExpired && f.State == "" {
				continue
			}
			if limit > 0 && listed == limit {
				break
			}
			listed++
			if err := a.listed(t, &page[i], keysOnly); err != nil {
				return listed, err
			}
		}
		if err := t.flush(); err != nil {
			return listed, err
		}
		if len(page) < f.Limit {
			break
		}
		f.Before = page[len(page)-1].Cursor
	}
	return listed, nil
}

func (a *app) listed(t *table, j *store.JobSummary, keysOnly bool) error {
	switch {
	case keysOnly:
		_, err := fmt.Fprintln(a.streams.Out, j.Key)
		return err
	case a.json():
		return a.object(summaryOf(j))
	}
	t.row(j.Key, j.Flow.Name, j.Flow.Version, j.State, j.Semaphore, at(j.Started), took(j.Started, j.Closed))
	return nil
}
