package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/look"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// maxRows bounds the rows of one table of show and replay.
const maxRows = 200

const showText = `Show jobs:

- state, input, output or error
- the graph, with the state of each activity
- activities: input, output or error, attempts, how long they waited and ran
- effects with their keys (--effect shows the result of one)
- open rows (what was sent and what waits), waits for signals, dead letters

Lists are cut at 200 rows, values at 200 bytes, and errors after their first line; -o json
cuts nothing. quipu log shows what happened, in order. By --api there is no graph, and there
are no inputs, effects or attempts.

In the graph an activity stands below the one that it follows. Several below one are
branches. A join stands below the activity at which its branches parted. ✓ done,
✗ failed, ● waiting, ▶ running, ! waits for a person, ○ not reached, ⊘ skipped,
◌ abandoned. On a terminal there are colours, unless NO_COLOR is set.

--digits adds addresses, ledgers with what they say, and the head of the journal. The
digits of a ledger, in groups: 0 active, 1 trigger, 2 finalized; Leg1 entries; Leg1
complete; join taken; arrivals; Leg2 entries. An address has one number for each activity
on the way: the number of its pass, from 0. ,0^4 is short for ,0,0,0,0.

--effect shows one effect: place, class, state, result, and the entries that tell of it.
Name it by its key, or in one job by its name (charge, charge[order-1]). If the job does
not have it, the whole journal of the job is verified. For a closed job this proves that
the effect did not happen and cannot happen any more.

Exit codes of --effect:

- 0: every effect that was found has its result
- 1: nothing is proved, because the journal breaks a law
- 4: it did not happen: proved for the job; with a key alone, no job has it
- 8: it is not done, its outcome is unknown, or the job is open and it can still happen`

func (a *app) showCommand() *cobra.Command {
	var lines int
	var digits bool
	var effect string
	cmd := &cobra.Command{
		Use:   "show KEY... | show - | show --effect EFFECT [KEY]",
		Short: "Show jobs: graph, activities with input and output, effects, what waits; or an effect",
		Long:  showText,
		Example: `  quipu show order-42
  quipu show --effect 'charge[line-3]' order-42
  quipu show --effect 9f2c…`,
		Args: func(cmd *cobra.Command, args []string) error {
			if effect != "" {
				return cli.Args(0, 1)(cmd, args)
			}
			if len(args) == 0 {
				return errors.New("give the KEY of a job, - to read keys from standard input, or --effect")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&effect, "effect", "", "show the `EFFECT` with this key or name, of a job")
	cmd.Flags().BoolVar(&digits, "digits", false, "add addresses and ledgers")
	cmd.Flags().IntVar(&lines, "lines", explain.MaxLines, "at most `N` lines of the graph; what is beyond is counted")
	return a.ofKeys(cmd, func(cmd *cobra.Command, keys []string) error {
		if lines < 1 {
			return cli.Exitf(cli.CodeUsage, "--lines %d: use 1 or more", lines)
		}
		if effect != "" {
			return a.with(cmd, looks, func(ctx context.Context, rt *quipu.Runtime) error {
				return a.showEffect(ctx, rt, effect, keys)
			})
		}
		return a.ask(cmd, looks, func(ctx context.Context, rt *quipu.Runtime, remote *api.Client) error {
			if remote != nil {
				return a.each(cmd, keys, func(key string) error { return a.showBy(ctx, remote, key) })
			}
			s := &shower{app: a, rt: rt, style: explain.Style{Lines: lines, Color: a.colored()}, digits: digits}
			return a.each(cmd, keys, func(key string) error { return s.show(ctx, key) })
		})
	})
}

// colored says whether the output may have colours.
func (a *app) colored() bool {
	return cli.Terminal(a.streams.Out) && a.streams.Getenv("NO_COLOR") == ""
}

// shower shows jobs.
type shower struct {
	*app
	rt     *quipu.Runtime
	style  explain.Style
	digits bool
}

// shown is everything that show reads of one job.
type shown struct {
	*store.JobView
	flow       *flow.Flow // nil if this build cannot read it
	effects    []store.JobEffect
	input      *history.Value
	activities []history.Activity
	elements   map[journal.GUID]int // elements of lists, by their requests
	silent     error                // why the history is missing
	letters    []quipu.DeadLetter   // the oldest first
}

func (s *shower) show(ctx context.Context, key string) error {
	job, err := look.Find(ctx, s.rt, key)
	if err != nil {
		return err
	}
	v := &shown{elements: map[journal.GUID]int{}}
	if v.JobView, err = below.Of(s.rt).Job(ctx, job.ID); err != nil {
		return err
	}
	if v.effects, err = below.Of(s.rt).JobEffects(ctx, job.ID); err != nil {
		return err
	}
	v.letters, err = s.rt.Operator().DeadLetters(ctx,
		quipu.DeadLetterFilter{All: true, Jobs: []journal.JobID{job.ID}, Limit: store.MaxPage})
	if err != nil {
		return err
	}
	slices.Reverse(v.letters)
	v.flow = look.Definition(ctx, s.rt, v.Flow)
	var events []history.Event
	events, v.silent = inspect.History(ctx, below.Of(s.rt), job.ID)
	v.activities = history.Activities(events)
	for i := range events {
		ev := &events[i]
		if ev.Kind == history.KindStarted {
			v.input = ev.Input
		}
		if !ev.Chain.IsZero() && ev.Element >= 0 {
			v.elements[ev.Chain] = ev.Element
		}
	}
	if s.json() {
		return s.object(viewOf(v))
	}
	return s.print(ctx, v)
}

func (s *shower) teller() *teller {
	return &teller{app: s.app, rt: s.rt, digits: s.digits, names: map[journal.JobID]string{}, more: rawLog}
}

func (s *shower) print(ctx context.Context, v *shown) error {
	w := s.streams.Out
	l := s.teller()
	parent := ""
	if v.Parent != nil {
		parent = l.name(ctx, v.Parent.Job)
	}
	s.header(v, parent)
	if drawn := explain.Graph(&explain.Job{View: v.JobView, Flow: v.flow}, s.style); drawn != "" {
		fmt.Fprintln(w, drawn)
	}
	s.activities(ctx, l, v)
	if err := s.tables(v); err != nil {
		return err
	}
	if len(v.letters) > 0 {
		fmt.Fprintln(w)
		t := s.lettersTable()
		for i := range v.letters {
			if err := s.letter(t, &v.letters[i], false); err != nil {
				return err
			}
		}
		if err := t.flush(); err != nil {
			return err
		}
		openLetters(w, v.letters)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// activities prints the input and the output of each activity.
func (s *shower) activities(ctx context.Context, l *teller, v *shown) {
	all := v.activities
	for i := range all[:min(len(all), maxRows)] {
		l.width = max(l.width, min(len(l.who(&all[i].Last)), maxWho))
	}
	w := s.streams.Out
	for i := range all[:min(len(all), maxRows)] {
		x := &all[i]
		fmt.Fprintf(w, "%-*s  %s\n", l.width, plain(l.who(&x.Last)), plain(l.standsAt(ctx, x)))
		l.value(w, "in", x.Input)
		l.value(w, "out", x.Output)
		if x.Error != nil {
			l.failure(w, x.Error, true)
		}
	}
	if len(all) > maxRows {
		fmt.Fprintf(w, "… and %d more\n", len(all)-maxRows)
	}
	if v.silent != nil {
		fmt.Fprintf(w, "inputs and outputs are not shown: %v\n", v.silent)
	}
	if len(all) > 0 && (s.digits || len(v.effects)+len(v.Rows)+len(v.Waits) > 0) {
		fmt.Fprintln(w) // separates the tables
	}
}

// standsAt returns the state of an activity, its number of attempts, and how long it took.
func (l *teller) standsAt(ctx context.Context, x *history.Activity) string {
	last := x.Last
	if x.Attempts > 1 && last.Kind == history.KindDone {
		last.Text += fmt.Sprintf(" in attempt %d", x.Attempts)
	}
	last.Waited, last.Ran = x.Waited, x.Ran
	return l.what(ctx, &last, false)
}

// tables prints instances, effects, open rows and waits.
func (s *shower) tables(v *shown) error {
	w := s.streams.Out
	t := newTable(w, "ACTIVITY", address, "LEDGER", "CODE", "").bounded()
	if s.digits {
		for _, i := range ordered(v.JobView, v.flow) {
			x := instanceOf(i.Key, &i.Instance)
			instanceRow(t, &x)
		}
	}
	open := make([]wait, len(v.Waits))
	for i := range v.Waits {
		open[i] = waitOf(&v.Waits[i])
	}
	return sections(w, t, effectTable(w, v, s.digits), openRows(w, v.JobView, s.digits), waits(w, open, s.digits))
}

// ordered returns the instances in the order of the graph, each activity's by their passes.
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

// openLetters prints the full messages of open dead letters, which say at their end what can be
// done. The table cuts them.
func openLetters(w io.Writer, dead []quipu.DeadLetter) {
	for i := range dead {
		if d := &dead[i]; d.State == quipu.LetterOpen {
			fmt.Fprintf(w, "\nDead letter %d: %s\n", d.ID, plain(d.Message))
		}
	}
}

func (s *shower) header(v *shown, parent string) {
	w := s.streams.Out
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
	switch from := v.From; {
	case from == nil:
	case from.Forks():
		fmt.Fprintf(w, "fork     of entry %d of job %s\n", from.Fork.At, from.Job)
	default:
		fmt.Fprintf(w, "resumes  generation %d, job %s\n", from.Generation, from.Job)
	}
	if !v.Next.IsZero() {
		fmt.Fprintf(w, "resumed  as job %s\n", v.Next)
	}
	fmt.Fprintf(w, "state    %s\n", state)
	fmt.Fprintf(w, "started  %s\n", at(v.Started))
	if len(v.Tags) > 0 {
		fmt.Fprintf(w, "tags     %s\n", plain(strings.Join(v.Tags, ", ")))
	}
	if s.digits {
		fmt.Fprintf(w, "open     obligations: %d\n", v.Semaphore)
		fmt.Fprintf(w, "journal  %d entries, head %s\n", v.Head.Seq, v.Head.Hash)
		if v.Trace != "" {
			fmt.Fprintf(w, "trace    %s\n", plain(v.Trace))
		}
	}
	if v.ExpiresAt != collation.Never {
		fmt.Fprintf(w, "removed  %s\n", at(v.ExpiresAt))
	}
	if v.input != nil {
		fmt.Fprintf(w, "input    %s\n", folded(inert(v.input.JSON)))
	}
	if len(v.Output) > 0 {
		fmt.Fprintf(w, "output   %s\n", pretty(v.Output, "         "))
	}
	if v.Error != nil {
		fmt.Fprintf(w, "error    %s\n", plain(foldedError(v.Error, rawLog)))
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

func openRows(w io.Writer, v *store.JobView, digits bool) *table {
	t := newTable(w, "OPEN ROW", "ACTIVITY", address, "TOPIC", "TURN", "TRY", "SENT", "").bounded().addressed(digits)
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
		t.row(r.Kind, name, r.DAD, r.Topic, r.Turn, r.Attempt, counted(r.Publication, "time"), standing(r))
	}
	return t
}

func waits(w io.Writer, open []wait, digits bool) *table {
	t := newTable(w, "WAITS FOR", "KEY", "ACTIVITY", address, "SIGNALS", "SINCE").bounded().addressed(digits)
	for _, x := range open {
		since := local(x.Since)
		if x.Since == nil {
			since = fmt.Sprintf("entry %d", x.SinceEntry)
		}
		t.row(x.Topic, x.Key, x.Activity, x.DAD, x.Signals, since)
	}
	return t
}

// standing says what a dispatch row waits for.
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
