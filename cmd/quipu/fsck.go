package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
)

func (a *app) fsckCommand() *cobra.Command {
	var all, repair bool
	var who, reason string
	cmd := &cobra.Command{
		Use:   "fsck [KEY... | -]",
		Short: "Compare the tables of jobs with their journals, and repair them",
		Long: `Compare the tables of jobs with their journals: a line for each difference, with what is
stored and what the journal gives. Without a key it looks at the quarantined jobs, with
--all at every job. It only reads.

With --repair the tables of the named jobs are written as the journal gives them, in one
transaction with an entry that holds the differences. Then the job goes on. Only a
quarantined or a closed job is repaired. If its journal breaks a law, or a row cannot be
rebuilt, nothing is written, and the line says what to do.`,
		Example: "  quipu fsck\n  quipu fsck --all\n  quipu fsck order-42 --repair --who ann --reason \"the disk was replaced\"",
		Args:    cli.Args(0, -1),
	}
	cmd.Flags().BoolVar(&all, "all", false, "look at every job, not only at the quarantined ones")
	cmd.Flags().BoolVar(&repair, "repair", false, "write the tables of the named jobs as their journals give them")
	cmd.Flags().StringVar(&who, "who", "", "`NAME` of who decides, for the journal; default: the user")
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that says why, for the journal")
	a.completes(cmd)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		switch {
		case repair && (all || len(args) == 0):
			return cli.Exit(cli.CodeUsage, errors.New("--repair needs the keys of the jobs to repair"))
		case repair && reason == "":
			return cli.Exit(cli.CodeUsage, errors.New("--repair needs a --reason, for the journal"))
		case !repair && (who != "" || reason != ""):
			return cli.Exit(cli.CodeUsage, errors.New("--who and --reason belong to --repair"))
		case all && len(args) > 0:
			return cli.Exit(cli.CodeUsage, errors.New("--all needs no key"))
		}
		keys, err := a.keys(args)
		if err != nil {
			return err
		}
		if !repair {
			return a.with(cmd, reads, func(ctx context.Context, rt *quipu.Runtime) error {
				return a.check(ctx, cmd, rt, keys, all)
			})
		}
		return a.with(cmd, starts, func(ctx context.Context, rt *quipu.Runtime) error {
			return a.each(cmd, keys, func(key string) error {
				job, err := database{rt}.Find(ctx, key)
				if err != nil {
					return err
				}
				f, err := rt.Operator().Repair(ctx, job.ID, quipu.Who(cmp.Or(who, a.who())), quipu.Reason(reason))
				if printed := a.findings(&f, err == nil); err != nil || printed != nil {
					return errors.Join(err, printed)
				}
				return nil
			})
		})
	})
	return cmd
}

// check looks at the named jobs, or at all that are quarantined, or at all. Differences are
// codeRefused.
func (a *app) check(ctx context.Context, cmd *cobra.Command, rt *quipu.Runtime, keys []string, all bool) error {
	inspect := func(job quipu.Job) error {
		f, err := rt.Operator().Fsck(ctx, job.ID)
		if err == nil {
			err = a.findings(&f, false)
		}
		if n := len(f.Differences) + f.Unlisted; err == nil && (n > 0 || f.Broken != "") {
			err = cli.Exit(codeRefused, cli.ErrReported)
		}
		return err
	}
	if len(keys) > 0 {
		return a.each(cmd, keys, func(key string) error {
			job, err := database{rt}.Find(ctx, key)
			if err != nil {
				return err
			}
			return inspect(job)
		})
	}
	jobs := quarantined(ctx, rt)
	if all {
		jobs = below.Of(rt).AuditJobs(ctx, nil)
	}
	var code worst
	looked, what := 0, "quarantined jobs"
	if all {
		what = "jobs"
	}
	for id, err := range jobs {
		if err != nil {
			return err
		}
		looked++
		switch err := inspect(quipu.Job{ID: id}); codeOf(err) {
		case codeRefused:
			code.add(codeRefused)
		case codeNotFound: // it has expired
			looked--
		default:
			if err != nil {
				return err
			}
		}
	}
	if a.none(looked, what); looked > 0 && code.err() == nil && !a.json() {
		fmt.Fprintf(a.streams.Err, "%s: the tables are what the journals give\n", counted(looked, "job"))
	}
	return code.err()
}

// quarantined lists the quarantined jobs.
func quarantined(ctx context.Context, rt *quipu.Runtime) iter.Seq2[journal.JobID, error] {
	return func(yield func(journal.JobID, error) bool) {
		for job, err := range rt.AllJobs(ctx, quipu.JobFilter{States: []journal.JobState{journal.JobQuarantined}}) {
			if !yield(job.ID, err) {
				return
			}
		}
	}
}

// findings prints what was found out about one job, one line for each difference.
func (a *app) findings(f *quipu.Findings, repaired bool) error {
	if f.Job.ID.IsZero() {
		return nil
	}
	if a.json() {
		lines := make([]map[string]any, 0, len(f.Differences))
		for i := range f.Differences {
			d := &f.Differences[i]
			lines = append(lines, map[string]any{
				"table": d.Table, "row": d.Row, "column": d.Column, "stored": d.Stored, "journal": d.Journal, "left": d.Left,
			})
		}
		return a.object(map[string]any{
			"key": f.Job.Key, "job": f.Job.ID.String(), "state": f.State, "broken": f.Broken, "differences": lines, "unlisted": f.Unlisted, "repaired": repaired,
		})
	}
	key := plain(f.Job.Key)
	say := func(format string, args ...any) error {
		_, err := fmt.Fprintf(a.streams.Out, "%s: "+format+"\n", append([]any{key}, args...)...)
		return err
	}
	for i := range f.Differences {
		d := &f.Differences[i]
		what := d.Table + " " + plain(d.Row)
		if d.Column != "" {
			what += " " + d.Column
		}
		left := ""
		if d.Left != "" {
			left = "; cannot be rebuilt: " + d.Left
		}
		if err := say("%s: stored %s, by the journal %s%s", what, orNone(d.Stored), orNone(d.Journal), left); err != nil {
			return err
		}
	}
	switch {
	case f.Unlisted > 0:
		return say("%d more differences", f.Unlisted)
	case repaired:
		return say("repaired, %d differences", len(f.Differences))
	case f.Broken != "":
		return say("its journal breaks a law, and is not repaired: %s", f.Broken)
	case len(f.Differences) == 0 && f.State == journal.JobQuarantined:
		return say("quarantined, its tables are what its journal gives: repair lets it go on")
	}
	return nil
}

// orNone shows a value of a difference; an empty one stands for no row.
func orNone(s string) string {
	if s == "" {
		return "nothing"
	}
	return plain(s)
}
