package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/explain"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal/store"
)

// maxRows bounds the rows of one table of show and replay.
const maxRows = 200

func (a *app) showCommand() *cobra.Command {
	var lines int
	var effect string
	cmd := &cobra.Command{
		Use:   "show KEY... | show - | show --effect EFFECT [KEY]",
		Short: "Show jobs with their graph, digits, open rows and dead letters; or an effect",
		Long: `Show jobs: state, output or error; the graph with the state of each activity; the
instances with their digits and what these say; effects, with their keys; open rows
(what was sent and what waits), waits for signals, and dead letters. Tables are cut at
200 rows, -o json is not. Results of effects are with --effect.

In the graph an activity stands below the one it follows, several are branches, and a
join stands below the activity at which its branches parted. ✓ done, ✗ failed,
● waiting, ▶ running, ! waits for a person, ○ not reached, ⊘ skipped, ◌ abandoned.
Colours are used on a terminal, unless NO_COLOR is set.

The digits of a ledger are, in groups: 0 active, 1 trigger or 2 finalized; Leg1
entries; Leg1 complete; join taken; arrivals; Leg2 entries. An address has a number for
each activity on the way, that of its pass, from 0; ,0^4 is short for ,0,0,0,0.

With --effect one effect is shown, found by its key among all jobs, or by its key or
name (charge, charge[order-1]) in one: place, class, state, result, and the entries that
tell of it. If the job does not have it, its whole journal is verified, and if it is closed
this proves that the effect did not happen and cannot any more. Exit code 0: all that was
found has its result; 4: it did not happen, proved (of a key alone: no job has it);
8: it is not done, its outcome is not known, or the job is open and it can still happen;
1: nothing is proved, the journal breaks a law.`,
		Example: `  quipu show order-42
  quipu show --effect 'charge[line-3]' order-42
  quipu show --effect 9f2c…`,
		Args: func(cmd *cobra.Command, args []string) error {
			if effect != "" {
				return cobra.MaximumNArgs(1)(cmd, args)
			}
			if len(args) == 0 {
				return errors.New("give the KEY of a job, - to read keys from standard input, or --effect")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&effect, "effect", "", "show the `EFFECT` with this key or name, of a job")
	cmd.Flags().IntVar(&lines, "lines", explain.MaxLines, "at most `N` lines of the graph; what is beyond is counted")
	a.completes(cmd)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		if lines < 1 {
			return cli.Exitf(cli.CodeUsage, "--lines %d: use 1 or more", lines)
		}
		keys, err := a.keys(args)
		if err != nil {
			return err
		}
		if effect != "" {
			return a.with(cmd, reads, func(ctx context.Context, rt *quipu.Runtime) error { return a.showEffect(ctx, rt, effect, keys) })
		}
		style := explain.Style{Lines: lines, Color: a.colored()}
		return a.with(cmd, reads, func(ctx context.Context, rt *quipu.Runtime) error {
			return a.each(cmd, keys, func(key string) error { return a.showOne(ctx, rt, key, style) })
		})
	})
	return cmd
}

// colored says that what is printed may have colours.
func (a *app) colored() bool {
	no, set := a.streams.Env("NO_COLOR")
	return cli.Terminal(a.streams.Out) && (!set || no == "")
}

func (a *app) showOne(ctx context.Context, rt *quipu.Runtime, key string, style explain.Style) error {
	job, err := rt.Find(ctx, key)
	if err != nil {
		return err
	}
	v, err := rt.Job(ctx, job)
	if err != nil {
		return err
	}
	effects, err := rt.Store().JobEffects(ctx, job.ID)
	if err != nil {
		return err
	}
	if a.json() {
		return a.object(viewOf(v, effects))
	}
	f := definition(ctx, rt, v)
	w := a.streams.Out
	header(w, v, parentName(ctx, rt, v))
	if drawn := explain.Graph(&explain.Job{View: v, Flow: f}, style); drawn != "" {
		fmt.Fprintln(w, drawn)
	}
	if err := tables(w, v, f, effects); err != nil {
		return err
	}
	if len(v.Dead) > 0 {
		fmt.Fprintln(w)
		if err := a.letters(v.Dead); err != nil {
			return err
		}
		openLetters(w, v.Dead)
	}
	_, err = fmt.Fprintln(w)
	return err
}

// tables prints instances, effects, open rows and waits.
func tables(w io.Writer, v *store.JobView, f *flow.Flow, effects []store.JobEffect) error {
	t := newTable(w, "ACTIVITY", "ADDRESS", "LEDGER", "CODE", "").bounded()
	for _, i := range ordered(v, f) {
		x := instanceOf(i.Key, &i.Instance)
		instanceRow(t, &x)
	}
	open := make([]wait, len(v.Waits))
	for i := range v.Waits {
		open[i] = waitOf(&v.Waits[i])
	}
	return sections(w, t, effectTable(w, effects), openRows(w, v), waits(w, open))
}

// ordered are the instances in the order of the graph, each by its passes.
func ordered(v *store.JobView, f *flow.Flow) []store.InstanceView {
	if f == nil {
		return v.Instances
	}
	index := func(i store.InstanceView) int {
		if a, ok := f.Activity(i.Key.Activity); ok {
			return a.Index
		}
		return -1
	}
	return slices.SortedStableFunc(slices.Values(v.Instances), func(x, y store.InstanceView) int {
		return cmp.Or(cmp.Compare(index(x), index(y)), x.Key.DAD.Compare(y.Key.DAD))
	})
}

// sections prints tables with an empty line between them.
func sections(w io.Writer, tables ...*table) error {
	first := true
	for _, t := range tables {
		if t.rows == 0 {
			continue
		}
		if !first {
			fmt.Fprintln(w)
		}
		first = false
		if err := t.flush(); err != nil {
			return err
		}
	}
	return nil
}

// parentName is the key of the job that started this one, or else its id.
func parentName(ctx context.Context, rt *quipu.Runtime, v *store.JobView) string {
	if v.Parent == nil {
		return ""
	}
	if p, err := rt.Job(ctx, quipu.Job{ID: v.Parent.Job}); err == nil {
		return p.Key
	}
	return v.Parent.Job.String()
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

// definition is the job's flow, nil if this build cannot read it: then there is no
// graph.
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

func header(w io.Writer, v *store.JobView, parent string) {
	state := string(v.State)
	if v.State.Closed() {
		state += fmt.Sprintf(" with code %d after %s", v.Code, took(v.Started, v.Closed))
		if !v.Ended {
			state += ", its completion tasks are open"
		}
	}
	fmt.Fprintf(w, "job      %s (%s)\n", plain(v.Key), v.ID)
	fmt.Fprintf(w, "flow     %s version %s\n", v.Flow.Name, v.Flow.Version)
	switch p := v.Parent; {
	case p == nil:
	case p.Turn == 0 && !p.Awaited:
		fmt.Fprintf(w, "undoes   %s at %s of %s\n", p.Activity, p.DAD, plain(parent))
	default:
		fmt.Fprintf(w, "parent   %s, by %s at %s\n", plain(parent), p.Activity, p.DAD)
	}
	fmt.Fprintf(w, "state    %s; open obligations: %d\n", state, v.Semaphore)
	fmt.Fprintf(w, "started  %s\n", at(v.Started))
	fmt.Fprintf(w, "journal  %d entries, head %s\n", v.Head.Seq, v.Head.Hash)
	if v.Trace != "" {
		fmt.Fprintf(w, "trace    %s\n", plain(v.Trace))
	}
	if v.ExpiresAt != collation.Never {
		fmt.Fprintf(w, "removed  %s\n", at(v.ExpiresAt))
	}
	if len(v.Output) > 0 {
		fmt.Fprintf(w, "output   %s\n", pretty(v.Output, "         "))
	}
	if v.Error != nil {
		fmt.Fprintf(w, "error    %s: %s\n", plain(v.Error.Class), plain(v.Error.Message))
	}
	fmt.Fprintln(w)
}

func instanceRow(t *table, i *instance) {
	code := ""
	if i.Code != 0 {
		code = fmt.Sprint(i.Code)
	}
	t.row(i.Activity, i.DAD, grouped(i.digits), code, i.Decoded)
}

func openRows(w io.Writer, v *store.JobView) *table {
	t := newTable(w, "OPEN ROW", "ACTIVITY", "ADDRESS", "TOPIC", "TURN", "TRY", "SENT", "").bounded()
	lists := map[collation.InstanceKey]bool{}
	for i := range v.Instances {
		lists[v.Instances[i].Key] = v.Instances[i].Count > 0
	}
	for i := range v.Rows {
		r := &v.Rows[i]
		name := r.Activity
		if lists[collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}] {
			name = fmt.Sprintf("%s[%d]", name, r.Element)
		}
		t.row(r.Kind, name, r.DAD, r.Topic, r.Turn, r.Try, counted(r.Publication, "time"), standing(r))
	}
	return t
}

func waits(w io.Writer, open []wait) *table {
	t := newTable(w, "WAITS FOR", "KEY", "ACTIVITY", "ADDRESS", "SIGNALS", "SINCE").bounded()
	for _, x := range open {
		since := local(x.Since)
		if x.Since == nil {
			since = fmt.Sprintf("entry %d", x.SinceEntry)
		}
		t.row(x.Topic, x.Key, x.Activity, x.DAD, x.Signals, since)
	}
	return t
}

// standing says what a row waits for.
func standing(r *collation.Row) string {
	switch {
	case r.Held == collation.HeldParallel:
		return "held until other elements end"
	case r.Held != "":
		return "held: " + r.Held + "; see dead letters"
	case r.Holder != "":
		return "with " + r.Holder
	case r.NextAt == collation.Never && len(r.Pauses) > 0:
		return "suspended: waits for " + counted(len(r.Pauses), "thing") + ", see why"
	case r.NextAt == collation.Never:
		return "waits"
	case r.Publication == 0:
		return "goes out at " + at(r.NextAt)
	}
	return "sent at " + at(r.PublishedAt) + ", looked at again at " + at(r.NextAt)
}
