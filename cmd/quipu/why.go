package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/explain"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
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
	a.completes(cmd)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		if limit < 0 {
			return cli.Exitf(cli.CodeUsage, "--limit %d: use 0 or more", limit)
		}
		keys, err := a.keys(args)
		if err != nil {
			return err
		}
		return a.with(cmd, looks, func(ctx context.Context, rt *quipu.Runtime) error {
			return a.each(cmd, keys, func(key string) error { return a.why(ctx, rt, key, limit, digits) })
		})
	})
	return cmd
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
	j, err := look(ctx, rt, key)
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

// look reads everything that explains the state of a job.
func look(ctx context.Context, rt *quipu.Runtime, key string) (*explain.Job, error) {
	job, err := find(ctx, rt, key)
	if err != nil {
		return nil, err
	}
	v, err := below.Of(rt).Job(ctx, job.ID)
	if err != nil {
		return nil, err
	}
	j := &explain.Job{
		View: v, Flow: definition(ctx, rt, v), Now: collation.Micros(time.Now().UnixMicro()), Zone: time.Local,
		Find: func(id journal.JobID) *store.JobSummary {
			other, err := below.Of(rt).Job(ctx, id)
			if err != nil {
				return nil
			}
			return &other.JobSummary
		},
	}
	if j.Processes, err = below.Of(rt).Processes(ctx); err != nil {
		return nil, err
	}
	if j.Processes == nil {
		j.Processes = []store.ProcessView{} // not nil: they were read, and there are none
	}
	if v.State != journal.JobOpen && v.State != journal.JobExpired {
		err = closing(ctx, rt, job, j)
	}
	return j, err
}

// closing looks up the entry that closed or quarantined the job, and which child had failed.
func closing(ctx context.Context, rt *quipu.Runtime, job quipu.Job, j *explain.Job) error {
	var outcomes []*journal.Entry
	for e, err := range rt.Journal(ctx, job) {
		if err != nil {
			return err
		}
		if x := e.Response; x != nil && !x.Child.IsZero() && x.Code != collation.CodeOK {
			if outcomes = append(outcomes, e); len(outcomes) > maxOutcomes {
				outcomes = outcomes[1:]
			}
		}
		if e.Kind == journal.KindQuarantine || slices.Contains(e.Marks, journal.MarkClosed) {
			j.Last, j.Child = e, explain.PassedOn(j.View.Error, outcomes)
			return nil
		}
	}
	return nil
}

// maxOutcomes bounds the failed children that are compared with the error of the job.
const maxOutcomes = 1000
