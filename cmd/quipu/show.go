package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal/store"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show KEY... | show -",
		Short: "Show jobs with their instances, open rows and dead letters",
		Long: `Show jobs: state, output or error, the graph with the digits of each instance and
what they say, the open rows (what was sent and what waits), and dead letters.

The digits of a ledger are, in groups: 0 active, 1 trigger or 2 finalized; Leg1
entries; Leg1 complete; join taken; arrivals; Leg2 entries.`,
		Args: cobra.MinimumNArgs(1),
		RunE: cli.Run(func(cmd *cobra.Command, args []string) error {
			keys, err := a.keys(args)
			if err != nil {
				return err
			}
			return a.with(cmd, reads, func(ctx context.Context, rt *quipu.Runtime) error {
				var code worst
				for _, key := range keys {
					if err := a.showOne(ctx, rt, key); err != nil {
						if codeOf(err) != codeNotFound {
							return err
						}
						fmt.Fprintf(a.streams.Err, "quipu show: %v\n", err)
						code.add(codeNotFound)
					}
				}
				return code.err()
			})
		}),
	}
}

func (a *app) showOne(ctx context.Context, rt *quipu.Runtime, key string) error {
	job, err := rt.Find(ctx, key)
	if err != nil {
		return err
	}
	v, err := rt.Job(ctx, job)
	if err != nil {
		return err
	}
	if a.json() {
		return a.object(viewOf(v))
	}
	header(a.streams.Out, v)
	if err := graph(a.streams.Out, v, definition(ctx, rt, v)); err != nil {
		return err
	}
	if err := openRows(a.streams.Out, v); err != nil {
		return err
	}
	if len(v.Dead) > 0 {
		fmt.Fprintln(a.streams.Out)
		if err := a.letters(v.Dead); err != nil {
			return err
		}
		openLetters(a.streams.Out, v.Dead)
	}
	_, err = fmt.Fprintln(a.streams.Out)
	return err
}

// openLetters prints what the table cuts: the message of an open letter ends with
// what can be done about it.
func openLetters(w io.Writer, dead []store.DeadView) {
	for i := range dead {
		if d := &dead[i]; d.State == "open" {
			fmt.Fprintf(w, "\nDead letter %d: %s\n", d.ID, plain(d.Letter.Message))
		}
	}
}

// definition is the job's flow, nil if this build cannot read it: then the graph
// is the list of instances.
func definition(ctx context.Context, rt *quipu.Runtime, v *store.JobView) *flow.Flow {
	text, err := rt.Store().Flow(ctx, v.Flow.Name, v.Flow.Version)
	if err != nil {
		return nil
	}
	f, err := flow.FromCanonical(text)
	if err != nil {
		return nil
	}
	return f
}

func header(w io.Writer, v *store.JobView) {
	state := string(v.State)
	if v.State.Closed() {
		state += fmt.Sprintf(" with code %d after %s", v.Code, took(v.Started, v.Closed))
		if !v.Ended {
			state += ", its completion tasks are open"
		}
	}
	fmt.Fprintf(w, "job      %s (%s)\n", plain(v.Key), v.ID)
	fmt.Fprintf(w, "flow     %s version %s\n", v.Flow.Name, v.Flow.Version)
	fmt.Fprintf(w, "state    %s; open obligations: %d\n", state, v.Semaphore)
	fmt.Fprintf(w, "started  %s\n", at(v.Started))
	fmt.Fprintf(w, "journal  %d entries, head %s\n", v.Head.Seq, v.Head.Hash)
	if v.Trace != "" {
		fmt.Fprintf(w, "trace    %s\n", plain(v.Trace))
	}
	if len(v.Output) > 0 {
		fmt.Fprintf(w, "output   %s\n", pretty(v.Output, "         "))
	}
	if v.Error != nil {
		fmt.Fprintf(w, "error    %s: %s\n", plain(v.Error.Class), plain(v.Error.Message))
	}
	fmt.Fprintln(w)
}

// graph prints the instances in the order of the graph, indented by depth.
func graph(w io.Writer, v *store.JobView, f *flow.Flow) error {
	t := newTable(w, "ACTIVITY", "ADDRESS", "LEDGER", "CODE", "")
	if f == nil {
		for i := range v.Instances {
			instanceRow(t, 0, &v.Instances[i])
		}
		return t.flush()
	}
	by := map[string][]*store.InstanceView{}
	for i := range v.Instances {
		name := v.Instances[i].Key.Activity
		by[name] = append(by[name], &v.Instances[i])
	}
	var walk func(a *flow.Activity)
	walk = func(a *flow.Activity) {
		for _, i := range by[a.Name] {
			instanceRow(t, a.Depth, i)
		}
		if len(by[a.Name]) == 0 {
			t.row(strings.Repeat("  ", a.Depth)+a.Name, "", "", "", "not reached")
		}
		for _, tr := range a.Out {
			if tr.To.Parent == a {
				walk(tr.To)
			}
		}
	}
	walk(f.Trigger())
	return t.flush()
}

func instanceRow(t *table, depth int, i *store.InstanceView) {
	code := ""
	if i.Code != 0 {
		code = fmt.Sprint(i.Code)
	}
	t.row(strings.Repeat("  ", depth)+i.Key.Activity, i.Key.DAD, grouped(i.Ledger), code, decoded(i.Ledger))
}

func openRows(w io.Writer, v *store.JobView) error {
	if len(v.Rows) > 0 {
		fmt.Fprintln(w)
	}
	t := newTable(w, "OPEN ROW", "ACTIVITY", "ADDRESS", "TOPIC", "TURN", "TRY", "SENT", "")
	for i := range v.Rows {
		r := &v.Rows[i]
		t.row(r.Kind, r.Activity, r.DAD, r.Topic, r.Turn, r.Try, counted(r.Publication, "time"), standing(r))
	}
	return t.flush()
}

// standing says what a row waits for.
func standing(r *collation.Row) string {
	switch {
	case r.Held != "":
		return "held: " + r.Held + "; see dead letters"
	case r.Holder != "" && r.LeaseUntil != collation.Never:
		return "with " + r.Holder + ", lease until " + at(r.LeaseUntil)
	case r.NextAt == collation.Never:
		return "waits"
	case r.Publication == 0:
		return "goes out at " + at(r.NextAt)
	}
	return "sent at " + at(r.PublishedAt) + ", looked at again at " + at(r.NextAt)
}
