package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/look"
)

func (a *app) whyCommand() *cobra.Command {
	var limit int
	var digits bool
	cmd := &cobra.Command{
		Use:   "why KEY... | why -",
		Short: "Say what jobs wait for",
		Long: `Say what jobs wait for and what happens next, in one sentence for each thing that is
open. What needs a person comes first, with the commands that answer it. For a job that
has ended, say how and why. In a database that is another one than the space's no process
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
		return a.with(cmd, looks, func(ctx context.Context, rt *quipu.Runtime) error {
			return a.each(cmd, keys, func(key string) error { return a.why(ctx, rt, key, limit, digits) })
		})
	})
}

// reason is one thing that a job waits for, as why prints it in JSON.
type reason struct {
	Kind     string     `json:"kind"`
	Activity string     `json:"activity,omitempty"`
	DAD      string     `json:"dad,omitempty"`
	Text     string     `json:"text"`
	Due      *time.Time `json:"due,omitempty"`
	Dead     int64      `json:"dead,omitempty"`
	Commands []string   `json:"commands,omitempty"`
}

func (a *app) why(ctx context.Context, rt *quipu.Runtime, key string, limit int, digits bool) error {
	j, err := explained(ctx, rt, key)
	if err != nil {
		return err
	}
	j.Addresses = digits
	reasons := explain.Why(j)
	more := 0
	if limit > 0 && len(reasons) > limit {
		more = len(reasons) - limit
		reasons = reasons[:limit]
	}
	if a.json() {
		out := make([]reason, len(reasons))
		for i, r := range reasons {
			out[i] = reason{string(r.Kind), r.Activity, string(r.DAD), r.Text, stamp(r.Due), r.Dead, r.Commands}
		}
		return a.object(map[string]any{"key": key, "job": j.View.ID.String(), "state": j.View.State, "reasons": out, "more": more})
	}
	w := a.streams.Out
	fmt.Fprintf(w, "%s (%s)\n", plain(key), j.View.State)
	for _, r := range reasons {
		fmt.Fprintf(w, "  %s\n", plain(r.Text))
		for _, c := range r.Commands {
			fmt.Fprintf(w, "    %s\n", plain(c))
		}
	}
	if more > 0 {
		fmt.Fprintf(w, "  … and %d more; --limit 0 says all\n", more)
	}
	return nil
}

// explained reads everything that explains the state of a job.
func explained(ctx context.Context, rt *quipu.Runtime, key string) (*explain.Job, error) {
	job, err := look.Find(ctx, rt, key)
	if err != nil {
		return nil, err
	}
	return look.Now(ctx, rt, job.ID)
}
