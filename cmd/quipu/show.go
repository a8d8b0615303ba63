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
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// maxRows bounds the rows of one table of show and replay.
const maxRows = 200

const showText = `Show jobs:

- state, input, output or error
- the graph, with the state of each activity
- activities, what failed first: input, output or error, attempts, how long they waited
  and ran
- effects with their keys (--effect shows the result of one)
- open rows (what was sent and what waits), waits for signals, dead letters

Lists are cut at 200 rows, values at 200 bytes, and errors after their first line; -o json
cuts nothing. quipu log shows what happened, in order. --effect needs the database.

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
		return a.ask(cmd, looks, func(ctx context.Context, from source) error {
			s := &shower{app: a, from: from, style: explain.Style{Lines: lines, Color: a.colored()}, digits: digits}
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
	from   source
	style  explain.Style
	digits bool
}

func (s *shower) show(ctx context.Context, key string) error {
	j, err := s.from.Job(ctx, key, view.Want{Graph: true, Effects: true, Journal: true})
	switch {
	case err != nil:
		return err
	case s.json():
		return s.object(j)
	}
	return s.print(ctx, j)
}

func (s *shower) teller() *teller {
	return &teller{app: s.app, from: s.from, digits: s.digits, names: map[journal.JobID]string{}, more: rawLog}
}

func (s *shower) print(ctx context.Context, j *view.Job) error {
	w := s.streams.Out
	l := s.teller()
	parent := ""
	if j.Parent != nil {
		parent = l.name(ctx, j.Parent.ID)
	}
	s.header(j, parent)
	if len(j.Graph) > 0 {
		fmt.Fprintln(w, explain.Graph(s.from.Flow(ctx, j.Flow, j.Version), j.Graph, s.style))
	}
	s.activities(ctx, l, j)
	if err := s.tables(j); err != nil {
		return err
	}
	if len(j.DeadLetters) > 0 {
		fmt.Fprintln(w)
		t := s.lettersTable()
		for i := range j.DeadLetters {
			if err := s.letter(t, &j.DeadLetters[i], false); err != nil {
				return err
			}
		}
		if err := t.flush(); err != nil {
			return err
		}
		openLetters(w, j.DeadLetters)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// activities prints the input and the output of each activity that the journal tells of, what failed first.
func (s *shower) activities(ctx context.Context, l *teller, j *view.Job) {
	var all []*view.Event
	var of []*view.Activity
	for i := range j.Activities {
		if x := &j.Activities[i]; x.Last != "" {
			of = append(of, x)
		}
	}
	slices.SortStableFunc(of, inspect.ByUrgency)
	for _, x := range of {
		all = append(all, standing(x))
	}
	for _, ev := range all[:min(len(all), maxRows)] {
		l.width = max(l.width, min(len(l.who(ev)), maxWho))
	}
	w := s.streams.Out
	for i, ev := range all[:min(len(all), maxRows)] {
		fmt.Fprintf(w, "%-*s  %s\n", l.width, plain(l.who(ev)), plain(l.what(ctx, ev, false)))
		l.value(w, "in", of[i].Input)
		l.value(w, "out", of[i].Output)
		if f := of[i].Error; f != nil {
			l.failure(w, f, true)
		}
	}
	if len(all) > maxRows {
		fmt.Fprintf(w, "… and %d more\n", len(all)-maxRows)
	}
	if j.HistoryError != "" {
		fmt.Fprintf(w, "inputs and outputs are not shown: %s\n", j.HistoryError)
	}
	if len(all) > 0 && (s.digits || len(j.Effects)+len(j.Messages)+len(j.Waits) > 0) {
		fmt.Fprintln(w) // separates the tables
	}
}

// standing is what last happened in an activity, with its number of attempts, and how long it took.
func standing(x *view.Activity) *view.Event {
	ev := &view.Event{
		Kind: x.Last, Activity: x.Activity, Address: x.Address, Pass: x.Pass, Element: x.Element, Text: x.Text,
		Job: x.Child, Due: x.Due, Waited: x.Waited, Ran: x.Ran,
	}
	if x.Attempts > 1 && x.Last == view.KindDone {
		ev.Text += fmt.Sprintf(" in attempt %d", x.Attempts)
	}
	return ev
}

// tables prints instances, effects, open rows and waits.
func (s *shower) tables(j *view.Job) error {
	w := s.streams.Out
	t := newTable(w, "ACTIVITY", address, "LEDGER", "CODE", "").bounded()
	if s.digits {
		order := map[string]int{}
		for i := range j.Graph {
			order[j.Graph[i].Activity] = i + 1
		}
		instances(t, j, func(x, y *view.Activity) int {
			return cmp.Compare(order[x.Activity], order[y.Activity])
		})
	}
	return sections(w, t, effectTable(w, j, s.digits), openRows(w, j, s.digits), waits(w, j.Waits, s.digits))
}

// instances fills a table with the instances of a job and their ledgers. Those that are equal stand in the
// order of their addresses.
func instances(t *table, j *view.Job, by func(x, y *view.Activity) int) {
	var all []*view.Activity
	for i := range j.Activities {
		if x := &j.Activities[i]; x.Says != "" {
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(x, y *view.Activity) int {
		return cmp.Or(by(x, y), collation.DAD(x.Address).Compare(collation.DAD(y.Address)))
	})
	for _, x := range all {
		code := ""
		if x.Code != 0 {
			code = fmt.Sprint(x.Code)
		}
		t.row(x.Activity, x.Address, grouped(x.Ledger, ofActivity), code, x.Says)
	}
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
func openLetters(w io.Writer, dead []view.DeadLetter) {
	for i := range dead {
		if d := &dead[i]; d.State == quipu.LetterOpen {
			fmt.Fprintf(w, "\nDead letter %d: %s\n", d.ID, plain(d.Message))
		}
	}
}

func (s *shower) header(j *view.Job, parent string) {
	w := s.streams.Out
	state := string(j.State)
	if j.State.Closed() {
		state += fmt.Sprintf(" with code %d after %s", j.Code, took(j.Started, j.Closed))
		if !j.Ended {
			state += ", its completion tasks are open"
		}
	}
	fmt.Fprintf(w, "job      %s (%s)\n", plain(j.Key), j.ID)
	fmt.Fprintf(w, "flow     %s version %s\n", j.Flow, j.Version)
	switch p := j.Parent; {
	case p == nil:
	case p.Undoes:
		fmt.Fprintf(w, "undoes   %s at %s of %s\n", p.Activity, p.Address, plain(parent))
	default:
		fmt.Fprintf(w, "parent   %s, by %s at %s\n", plain(parent), p.Activity, p.Address)
	}
	switch {
	case !j.ForkOf.IsZero():
		fmt.Fprintf(w, "fork     of entry %d of job %s\n", j.ForkAt, j.ForkOf)
	case !j.Resumes.IsZero():
		fmt.Fprintf(w, "resumes  generation %d, job %s\n", j.Generation-1, j.Resumes)
	}
	if !j.ResumedBy.IsZero() {
		fmt.Fprintf(w, "resumed  as job %s\n", j.ResumedBy)
	}
	fmt.Fprintf(w, "state    %s\n", state)
	fmt.Fprintf(w, "started  %s\n", local(j.Started))
	if len(j.Tags) > 0 {
		fmt.Fprintf(w, "tags     %s\n", plain(strings.Join(j.Tags, ", ")))
	}
	if s.digits {
		fmt.Fprintf(w, "open     obligations: %d\n", j.Semaphore)
		fmt.Fprintf(w, "journal  %s, head %s\n", entries(j.Entries), j.Head)
		if j.Trace != "" {
			fmt.Fprintf(w, "trace    %s\n", plain(j.Trace))
		}
	}
	if !j.Expires.IsZero() {
		fmt.Fprintf(w, "removed  %s\n", local(j.Expires))
	}
	s.result(j)
	fmt.Fprintln(w)
}

// result prints the input of a job, and its output or its error.
func (s *shower) result(j *view.Job) {
	w := s.streams.Out
	switch in := j.Input; {
	case in == nil:
	case in.Missing != "":
		fmt.Fprintf(w, "input    (%s)\n", in.Missing)
	default:
		fmt.Fprintf(w, "input    %s\n", folded(inert(in.JSON)))
	}
	switch {
	case j.Hidden && j.Ended:
		fmt.Fprintln(w, "output   (not shown to a viewer)")
	case len(j.Output) > 0:
		fmt.Fprintf(w, "output   %s\n", pretty(j.Output, "         "))
	}
	if j.Error != nil {
		fmt.Fprintf(w, "error    %s\n", plain(foldedError(j.Error, rawLog)))
	}
}

func openRows(w io.Writer, j *view.Job, digits bool) *table {
	t := newTable(w, "OPEN ROW", "ACTIVITY", address, "TOPIC", "TURN", "TRY", "SENT", "").bounded().addressed(digits)
	for i := range j.Messages {
		m := &j.Messages[i]
		t.row(m.Kind, listed(m.Activity, m.Element), m.Address, m.Topic, m.Turn, m.Attempt, counted(m.Sends, "time"), due(m))
	}
	return t
}

// listed is the name of an activity, with the place of an element in its list.
func listed(activity string, element *int) string {
	if element == nil {
		return activity
	}
	return fmt.Sprintf("%s[%d]", activity, *element)
}

func waits(w io.Writer, open []view.Wait, digits bool) *table {
	t := newTable(w, "WAITS FOR", "KEY", "ACTIVITY", address, "SIGNALS", "SINCE").bounded().addressed(digits)
	for _, x := range open {
		since := local(x.Since)
		if x.Since.IsZero() {
			since = fmt.Sprintf("entry %d", x.SinceEntry)
		}
		t.row(x.Topic, x.Key, x.Activity, x.Address, x.Signals, since)
	}
	return t
}

// due says what an open message waits for.
func due(m *view.Message) string {
	switch {
	case m.Held == view.HeldParallel:
		return "held until other elements end"
	case m.Held != "":
		return "held: " + string(m.Held) + "; see dead letters"
	case m.Holder != "":
		return "with " + m.Holder
	case m.Due.IsZero() && len(m.Pauses) > 0:
		return "suspended: waits for " + counted(len(m.Pauses), "thing") + ", see why"
	case m.Due.IsZero():
		return "waits"
	case m.Sends == 0:
		return "goes out at " + local(m.Due)
	}
	return "sent at " + local(m.Sent) + ", looked at again at " + local(m.Due)
}
