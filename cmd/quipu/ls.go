package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// living are the states of jobs that are more than tombstones.
var living = slices.Clip(journal.JobStates[:len(journal.JobStates)-1])

const lsText = `List jobs, newest first. An expired job is only a tombstone; --state expired lists those.

--from, --to, --tag and --parent use an index, and so do --state without completed and
expired, and --waits. The other filters are compared with each job, from the newest on:
where few jobs fit, give a time range. --count prints how many
jobs there are by state, of the newest 1000000 of the time range.

WHY is why a job failed, or what an open one waits for; quipu why says more.
TOOK is until the row of the job was written. show, why, log and trace tell the end by the
journal, which is some milliseconds earlier.

--watch goes on until it is interrupted. In a terminal it draws the list again about once
a second. Elsewhere, with --keys and with -o json it adds a line for each job that is new
among the newest --limit, at most 1000, and for each of them whose state has changed.`

func (a *app) lsCommand() *cobra.Command {
	var f quipu.JobFilter
	var o lsOptions
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List jobs",
		Long:    lsText,
		Example: "  quipu ls --watch --flow order\n  quipu ls --state open --flow order\n  quipu ls --state failed,interrupted --from 24h --keys | quipu show -\n  quipu ls --count --from 2026-11-01T00:00:00Z",
		Args:    cli.Args(0, 0),
	}
	cmd.Flags().StringSliceVar(&o.states, "state", nil, "only jobs in this `STATE`: open, completed, failed, interrupted, quarantined or expired; several with commas")
	cmd.Flags().StringVar(&f.Flow, "flow", "", "only jobs of this `FLOW`")
	cmd.Flags().StringVar(&f.Version, "version", "", "only jobs of this `VERSION` of their flow")
	cmd.Flags().StringVar(&f.Waits, "waits", "", "only open jobs that wait for `THIS`: topic (a worker), signal, timer, child or person; topic:NAME and signal:NAME")
	cmd.Flags().StringVar(&o.from, "from", "", "only jobs that started at this `TIME` or later: RFC 3339, or how long ago, such as 24h")
	cmd.Flags().StringVar(&o.to, "to", "", "only jobs that started before this `TIME`, as in --from")
	cmd.Flags().StringVar(&o.parent, "parent", "", "only jobs that this job started, given by its `KEY` or id")
	cmd.Flags().BoolVar(&o.count, "count", false, "print the number of jobs by state instead")
	cmd.Flags().StringVar(&f.Prefix, "prefix", "", "only jobs whose key begins with this `TEXT`")
	cmd.Flags().StringArrayVar(&f.Tags, "tag", nil, "only jobs with this `TAG`; may be repeated: with all of them")
	cmd.Flags().IntVar(&o.limit, "limit", 100, "at most `N` jobs; 0 is all")
	cmd.Flags().BoolVarP(&o.keysOnly, "keys", "k", false, "print keys alone, one in a line")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on, and show what changes")
	cmd.MarkFlagsMutuallyExclusive("watch", "count")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		if err := o.read(&f, time.Now()); err != nil {
			return err
		}
		return a.ask(cmd, looks, func(ctx context.Context, from source) error { return a.ls(ctx, from, f, &o) })
	})
	return cmd
}

func (a *app) ls(ctx context.Context, from source, f quipu.JobFilter, o *lsOptions) error {
	if o.parent != "" {
		parent, err := from.Find(ctx, o.parent)
		if err != nil {
			return err
		}
		f.Parent = parent.ID
	}
	if o.count {
		return a.count(ctx, from, f)
	}
	if len(f.States) == 0 {
		f.States = living
	}
	if o.watch {
		return a.watch(ctx, from, f, o)
	}
	listed, err := a.list(ctx, from, f, o.limit, o.keysOnly)
	if err == nil && listed == 0 && f.Flow != "" {
		err = deployedFlow(ctx, from, f.Flow)
	}
	if err == nil && !o.keysOnly {
		a.none(listed, "jobs")
	}
	return err
}

func stateNames() (names []string) {
	for _, state := range journal.JobStates {
		names = append(names, string(state))
	}
	return names
}

// lsOptions are the flags of ls that are not in the filter as they are.
type lsOptions struct {
	states           []string
	from, to, parent string
	limit            int
	keysOnly, count  bool
	watch            bool
}

// read checks the flags and completes the filter.
func (o *lsOptions) read(f *quipu.JobFilter, now time.Time) (err error) {
	for _, name := range o.states {
		state := journal.JobState(name)
		if !slices.Contains(journal.JobStates, state) {
			return cli.Exitf(cli.CodeUsage, "--state %.40q: use one of %v", name, journal.JobStates)
		}
		f.States = append(f.States, state)
	}
	if o.limit < 0 {
		return cli.Exitf(cli.CodeUsage, "--limit %d: use 0 or more", o.limit)
	}
	if o.watch && (o.limit == 0 || o.limit > store.MaxPage) {
		return cli.Exitf(cli.CodeUsage, "--limit %d: --watch shows 1 to %d jobs", o.limit, store.MaxPage)
	}
	waits := store.JobFilter{Waits: f.Waits}
	if _, _, err := waits.Waiting(); err != nil {
		return cli.Exitf(cli.CodeUsage, "--waits %.80q: use topic, topic:NAME, signal, signal:NAME, timer, child or person", f.Waits)
	}
	if f.From, err = earlier("--from", o.from, now); err != nil {
		return err
	}
	f.To, err = earlier("--to", o.to, now)
	return err
}

// count prints the numbers of jobs by state.
func (a *app) count(ctx context.Context, from source, f quipu.JobFilter) error {
	d, is := from.(database)
	if !is {
		return cli.Exitf(cli.CodeUsage, "--count needs the database; GET %s/counts of the API counts", api.Path)
	}
	counted, err := d.CountJobs(ctx, f)
	if err != nil {
		return err
	}
	if a.json() {
		return a.object(map[string]any{"jobs": counted.ByState, "looked": counted.Looked, "cut": counted.Cut})
	}
	t := newTable(a.streams.Out, "STATE", "JOBS")
	for _, state := range journal.JobStates {
		if n := counted.ByState[state]; n > 0 {
			t.row(state, n)
		}
	}
	if counted.Cut {
		fmt.Fprintf(a.streams.Err, "only the newest %d jobs of the time range were looked at: give --from and --to\n", counted.Looked)
	}
	return t.flush()
}

// deployedFlow returns an error if a flow, of which there are no jobs, is not deployed.
func deployedFlow(ctx context.Context, from source, name string) error {
	all, err := from.Flows(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(v view.FlowVersion) bool { return v.Flow == name }) {
		return nil
	}
	return cli.Exitf(codeNotFound, "--flow %.80q: no version of flow %.80s is deployed: `quipu flows` lists them", name, name)
}

// list prints a page at a time, so that memory does not grow with the list, and counts what it
// prints.
func (a *app) list(
	ctx context.Context, from source, f quipu.JobFilter, limit int, keysOnly bool,
) (listed int, err error) {
	t := jobsTable(a.streams.Out)
	for limit == 0 || listed < limit {
		if f.Limit = store.MaxPage; limit > 0 {
			f.Limit = min(limit-listed, store.MaxPage)
		}
		page, err := from.Jobs(ctx, f)
		if err == nil && !keysOnly {
			err = from.Annotate(ctx, page.Jobs)
		}
		if err != nil {
			return listed, err
		}
		for i := range page.Jobs {
			listed++
			if err := a.listed(t, &page.Jobs[i], keysOnly); err != nil {
				return listed, err
			}
		}
		if err := t.flush(); err != nil {
			return listed, err
		}
		if page.Next == "" {
			break
		}
		f.Before = page.Next
	}
	return listed, nil
}

func jobsTable(w io.Writer) *table {
	return newTable(w, "KEY", "FLOW", "VERSION", "STATE", "OPEN", "STARTED", "TOOK", "WHY")
}

func jobCells(j *view.Summary) []any {
	return []any{j.Key, j.Flow, j.Version, j.State, j.Semaphore, local(j.Started), took(j.Started, j.Closed), j.Note}
}

func (a *app) listed(t *table, j *view.Summary, keysOnly bool) error {
	if keysOnly {
		_, err := fmt.Fprintln(a.streams.Out, j.Key)
		return err
	}
	return a.item(t, j, jobCells(j)...)
}
