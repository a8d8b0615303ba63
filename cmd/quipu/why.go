package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

func (a *app) whyCommand() *cobra.Command {
	var limit int
	var digits bool
	cmd := &cobra.Command{
		Use:   "why KEY... | why -",
		Short: "Say what jobs wait for",
		Long: `Say what jobs wait for and what happens next, in one sentence for each thing that is
open. What needs a person comes first, with the commands that answer it. A line before a
command says what has to be so first; a word in capitals stands for what only you know. What
else is so stands in brackets. For a job that has ended, say how and why. In a database that is another one than the space's no process
works; then the command says why (quipu recover). An activity of a loop is named with its
pass, an element of a list with its number, from 0.`,
		Example: "  quipu why order-42\n  quipu ls --state open --keys | quipu why -",
		Args:    cli.Args(1, -1),
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "at most `N` sentences of a job; 0 is all")
	cmd.Flags().BoolVar(&digits, "digits", false, "name the address of each activity")
	return a.ofKeys(cmd, func(cmd *cobra.Command, keys []string) error {
		if limit < 0 {
			return cli.Exitf(cli.CodeUsage, "--limit %d: use 0 or more", limit)
		}
		return a.ask(cmd, looks, func(ctx context.Context, from source) error {
			return a.each(cmd, keys, func(key string) error { return a.why(ctx, from, key, limit, digits) })
		})
	})
}

// because is what a job waits for.
type because struct {
	Key     string           `json:"key"`
	Job     journal.JobID    `json:"job"`
	State   journal.JobState `json:"state"`
	Reasons []view.Reason    `json:"reasons"`
	More    int              `json:"more"` // over the limit
}

func (a *app) why(ctx context.Context, from source, key string, limit int, digits bool) error {
	j, err := from.Job(ctx, key, view.Want{Reasons: true, Addresses: digits})
	if err != nil {
		return err
	}
	out := because{Key: key, Job: j.ID, State: j.State, Reasons: j.Reasons}
	if limit > 0 && len(out.Reasons) > limit {
		out.More, out.Reasons = len(out.Reasons)-limit, out.Reasons[:limit]
	}
	if a.json() {
		return a.object(out)
	}
	w := a.streams.Out
	fmt.Fprintf(w, "%s (%s)\n", plain(key), j.State)
	for _, r := range out.Reasons {
		a.because(&r)
	}
	if out.More > 0 {
		fmt.Fprintf(w, "  … and %d more; --limit 0 says all\n", out.More)
	}
	return nil
}

// because prints a reason: what is so, what a person can do, and what else is so.
func (a *app) because(r *view.Reason) {
	w := a.streams.Out
	fmt.Fprintf(w, "  %s\n", plain(r.Text))
	first := ""
	for _, m := range r.Remedies {
		switch {
		case m.Command == "":
			fmt.Fprintf(w, "    %s\n", plain(m.First))
		case m.First != first && m.First != "":
			fmt.Fprintf(w, "    %s:\n", plain(m.First))
		}
		if first = m.First; m.Command != "" {
			fmt.Fprintf(w, "    %s\n", plain(m.Command))
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "  (%s)\n", plain(n))
	}
}
