package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// remotely are the commands that can ask the API.
const remotely = "start, wait, ls, show, signal, interrupt and dead"

// tokenVariable has the token for the API. It is no flag: others can read the flags of a process.
const tokenVariable = "QUIPU_TOKEN"

// ask runs f with a connected runtime, or with a client of the API where --api is given.
func (a *app) ask(
	cmd *cobra.Command, what need, f func(ctx context.Context, rt *quipu.Runtime, remote *api.Client) error,
) error {
	if err := a.configure(cmd); err != nil {
		return err
	}
	if a.api == "" {
		return a.with(cmd, what, func(ctx context.Context, rt *quipu.Runtime) error { return f(ctx, rt, nil) })
	}
	remote, err := api.NewClient(a.api, a.streams.Getenv(tokenVariable))
	if err != nil {
		return cli.Exit(cli.CodeUsage, fmt.Errorf("--api: %w", err))
	}
	err = f(cmd.Context(), nil, remote)
	if err != nil && cli.Code(err) == cli.CodeFailed {
		err = cli.Exit(codeOf(err), err)
	}
	return err
}

// listBy lists jobs by the API.
func (a *app) listBy(ctx context.Context, remote *api.Client, f store.JobFilter, o *lsOptions) error {
	switch {
	case o.count:
		return cli.Exitf(cli.CodeUsage, "--count needs the database; GET %s/counts of the API counts", api.Path)
	case o.watch:
		return cli.Exitf(cli.CodeUsage, "--watch needs the database: give --postgres or --dev")
	case len(f.States) == 0:
		f.States = living
	}
	if o.parent != "" {
		var err error
		if f.Parent, err = remoteJob(ctx, remote, o.parent); err != nil {
			return err
		}
	}
	read := func(ctx context.Context, f store.JobFilter) (store.JobPage, error) {
		page, next, err := remote.Jobs(ctx, quipu.JobFilter{
			States: f.States, Flow: f.Flow, Version: f.Version, Prefix: f.Prefix, Waits: f.Waits, Tags: f.Tags,
			Parent: f.Parent,
			From:   instant(f.From), To: instant(f.To), Before: f.Before, Limit: f.Limit,
		})
		all := store.JobPage{Jobs: make([]store.JobSummary, len(page)), Next: next}
		for i := range page {
			all.Jobs[i] = summaryFrom(&page[i])
		}
		return all, err
	}
	listed, err := a.list(ctx, read, f, o.limit, o.keysOnly)
	if err == nil && !o.keysOnly {
		a.none(listed, "jobs")
	}
	return err
}

// remoteJob is the id of the job that has the key now.
func remoteJob(ctx context.Context, remote *api.Client, key string) (journal.JobID, error) {
	job, err := remote.Job(ctx, key)
	if err != nil {
		return journal.JobID{}, err
	}
	return journal.ParseJobID(job.Job)
}

// instant is a time of a filter; the zero time for 0.
func instant(t collation.Micros) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t))
}

// inMicros is a time of an answer.
func inMicros(t *time.Time) collation.Micros {
	if t == nil {
		return collation.Never
	}
	return collation.Micros(t.UnixMicro())
}

// summaryFrom is a job as a list has it. The API does not give heads.
func summaryFrom(s *api.Summary) store.JobSummary {
	out := store.JobSummary{Closed: inMicros(s.Closed)}
	out.ID, _ = journal.ParseJobID(s.Job)
	out.Key, out.Generation, out.State, out.Semaphore, out.Tags = s.Key, s.Generation, journal.JobState(s.State),
		s.Semaphore, s.Tags
	out.Flow.Name, out.Flow.Version, out.Head.Seq, out.Started = s.Flow, s.Version, s.Entries, inMicros(&s.Started)
	return out
}

// showBy shows a job as the API has it.
func (a *app) showBy(ctx context.Context, remote *api.Client, key string) error {
	j, err := remote.Job(ctx, key)
	if err != nil {
		return err
	}
	if a.json() {
		return a.object(j)
	}
	w := a.streams.Out
	fmt.Fprintf(w, "job      %s (%s)\nflow     %s version %s\nstate    %s", plain(j.Key), j.Job, j.Flow, j.Version, j.State)
	if j.Closed != nil {
		fmt.Fprintf(w, " with code %d after %s", j.Code, took(inMicros(&j.Started), inMicros(j.Closed)))
	}
	fmt.Fprintf(w, "\nstarted  %s\n", local(&j.Started))
	if len(j.Tags) > 0 {
		fmt.Fprintf(w, "tags     %s\n", plain(strings.Join(j.Tags, ", ")))
	}
	switch {
	case j.Hidden && j.Ended:
		fmt.Fprintln(w, "output   (not shown to a viewer)")
	case len(j.Output) > 0:
		fmt.Fprintf(w, "output   %s\n", pretty(j.Output, "         "))
	}
	if f := j.Error; f != nil {
		fmt.Fprintf(w, "error    %s\n", plain(foldedError(&journal.Failure{Class: f.Class, Message: f.Message}, "-o json")))
	}
	fmt.Fprintln(w)
	open := newTable(w, "OPEN ROW", "ACTIVITY", "TOPIC", "TURN", "TRY", "HELD").bounded()
	for i := range j.Messages {
		m := &j.Messages[i]
		open.row(m.Kind, m.Activity, m.Topic, m.Turn, m.Attempt, m.Held)
	}
	waiting := newTable(w, "WAITS FOR", "KEY", "ACTIVITY", "SIGNALS", "SINCE").bounded()
	for i := range j.Waits {
		x := &j.Waits[i]
		waiting.row(x.Topic, x.Key, x.Activity, x.Signals, local(&x.Since))
	}
	dead := newTable(w, "DEAD", "ACTIVITY", "STATE", "REASON", "AT", "MESSAGE").bounded()
	for i := range j.DeadLetters {
		d := &j.DeadLetters[i]
		dead.row(d.ID, d.Activity, d.State, d.Reason, local(&d.At), d.Message)
	}
	return sections(w, open, waiting, dead)
}
