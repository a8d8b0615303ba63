package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/history"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/look"
	"github.com/quipu-journal/quipu/journal"
)

func (a *app) logCommand() *cobra.Command {
	l := &teller{app: a, names: map[journal.JobID]string{}, margin: len(clock) + 2, more: "--raw"}
	cmd := &cobra.Command{
		Use:   "log KEY... | log -",
		Short: "Tell what happened in jobs, from the beginning",
		Long: `Print the history of jobs from their journals, one event per line:

- requests with their input, and responses with the output or the error
- how long each waited for a worker, and how long it ran
- failed attempts, and when the next one is due
- effects and their outcomes
- signals, children, and operator actions

Inputs are not stored. They are evaluated again from the flow and the results before, and
shown if they have the sum that the journal recorded.

Values over 200 bytes are folded, and errors to their first line; --raw prints them whole,
with the stacks of errors. An error that an activity has from its effect, or a job from its
activity, stands once.
--digits adds the address of each activity, its ledger, and the number of the entry.
-f goes on until the job ends. -o json prints everything, one object per event. A history
has at most ` + strconv.Itoa(quipu.MaxHistory) + ` entries.`,
		Example: "  quipu log order-42\n  quipu log -f order-42",
		Args:    cli.Args(1, -1),
	}
	var follow bool
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job has ended")
	cmd.Flags().BoolVar(&l.raw, "raw", false, "print values, errors and stacks whole")
	cmd.Flags().BoolVar(&l.digits, "digits", false, "print addresses, ledgers and numbers of entries")
	return a.ofKeys(cmd, func(cmd *cobra.Command, keys []string) error {
		if follow && len(keys) > 1 {
			return cli.Exitf(cli.CodeUsage, "--follow: give one key, not %d", len(keys))
		}
		return a.with(cmd, looks, func(ctx context.Context, rt *quipu.Runtime) error {
			l.rt = rt
			return a.each(cmd, keys, func(key string) error { return l.log(ctx, key, follow) })
		})
	})
}

// teller prints the histories of jobs.
type teller struct {
	*app
	rt          *quipu.Runtime
	raw, digits bool
	names       map[journal.JobID]string // keys of other jobs
	key         string                   // key of the job
	day         string                   // day of the previous event
	margin      int                      // space to the left of the column of activities
	width       int                      // width of that column
	more        string                   // what shows the rest of errors
	said        said                     // the last error
}

// lookAgain is the pause between two looks at a job that is followed.
const lookAgain = 500 * time.Millisecond

func (l *teller) log(ctx context.Context, key string, follow bool) error {
	job, err := look.Find(ctx, l.rt, key)
	if err != nil {
		return err
	}
	l.day, l.width, l.said = "", 0, said{}
	type entry struct {
		chain journal.GUID
		seq   int64
	}
	told := map[entry]bool{}
	for first := true; ; first = false {
		began := time.Now()
		v, err := l.rt.Job(ctx, job)
		if err != nil {
			return err
		}
		events, err := inspect.History(ctx, below.Of(l.rt), job.ID)
		if err != nil {
			return err
		}
		l.key = v.Job.Key
		if first && !l.json() {
			fmt.Fprintf(l.streams.Out, "job %s, flow %s version %s, started %s\n", plain(v.Job.Key), v.Flow, v.Version, v.Started.Local().Format("2006-01-02 15:04:05.000"))
		}
		for i := range events {
			l.width = max(l.width, min(len(l.who(&events[i])), maxWho))
		}
		fresh := map[entry]bool{}
		for i := range events {
			of := entry{events[i].Chain, events[i].Seq}
			if told[of] {
				continue
			}
			fresh[of] = true
			if err := l.event(ctx, key, &events[i]); err != nil {
				return err
			}
		}
		for of := range fresh {
			told[of] = true
		}
		if !follow || v.State.Closed() && v.Ended || v.State == journal.JobQuarantined {
			l.lost(v)
			return nil
		}
		if err := rest(ctx, max(lookAgain, 10*time.Since(began))); err != nil {
			return err
		}
	}
}

// lost says which runs ended without an answer and are no entry of the journal.
func (l *teller) lost(v *quipu.JobInfo) {
	for _, m := range v.Messages {
		if m.Lost > 0 && !l.json() {
			fmt.Fprintf(l.streams.Out, "%s, attempt %d: %d of its runs ended without an answer, with their process or its connection (quipu why %s)\n",
				plain(m.Activity), m.Attempt, m.Lost, plain(v.Job.Key))
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// clock is the format of a time of day.
const clock = "15:04:05.000"

// maxWho bounds the column of activities, in bytes.
const maxWho = 32

func (l *teller) event(ctx context.Context, key string, ev *history.Event) error {
	if l.json() {
		return l.object(happenedOf(key, ev))
	}
	w := l.streams.Out
	moment := ev.Time.Local()
	if day := moment.Format("2006-01-02"); day != l.day {
		l.day = day
		fmt.Fprintln(w, day)
	}
	fmt.Fprintf(w, "%s  %-*s  %s\n", moment.Format(clock), l.width, plain(l.who(ev)), plain(l.what(ctx, ev, l.digits)))
	l.value(w, "in", ev.Input)
	l.value(w, "out", ev.Output)
	if ev.Error != nil {
		l.failed(w, ev)
	}
	return nil
}

// who returns the activity of an event, with its pass and element.
func (l *teller) who(ev *history.Event) string {
	who := ev.Activity
	if ev.Element >= 0 {
		who += fmt.Sprintf("[%d]", ev.Element)
	}
	switch pass := ev.Pass; {
	case l.digits:
		who += " " + ev.Address
	case pass > 1:
		who += fmt.Sprintf(" (pass %d)", pass)
	}
	return who
}

// what describes an event in words, on request with the place of its entry.
func (l *teller) what(ctx context.Context, ev *history.Event, digits bool) string {
	what := ev.Text + l.other(ctx, ev)
	switch {
	case ev.Due.IsZero():
	case ev.Kind == history.KindWaits:
		what += " until " + l.moment(ev.Due)
	case ev.Kind == history.KindAttempt:
		what += "; the next is due at " + l.moment(ev.Due)
	default:
		what += ", due at " + l.moment(ev.Due)
	}
	what += times(ev.Waited, ev.Ran)
	if digits {
		what += fmt.Sprintf("  #%d", ev.Seq)
		if !ev.Chain.IsZero() {
			what += " of " + ev.Chain.String()
		}
		if ev.Ledger != 0 {
			what += " " + ev.Ledger.String()
		}
	}
	return what
}

// other names the other job of an event. Another generation of the key has the same key, so
// that is named by its id.
func (l *teller) other(ctx context.Context, ev *history.Event) string {
	if ev.Job.IsZero() {
		return ""
	}
	name := l.name(ctx, ev.Job)
	switch own := name == l.key; {
	case own && ev.Kind == history.KindStarted:
		return "; the earlier job is " + ev.Job.String()
	case own && ev.Kind == history.KindOperator:
		return " as job " + ev.Job.String()
	case ev.Kind == history.KindStarted || ev.Kind == history.KindWoke || ev.Kind == history.KindDone ||
		ev.Kind == history.KindFailed:
		return " (" + name + ")"
	}
	return " " + name
}

// times says how long something waited and ran, as far as that is known.
func times(waited, ran time.Duration) string {
	switch {
	case waited > 0 && ran > 0:
		return fmt.Sprintf(" (waited %s, took %s)", short(waited), short(ran))
	case waited > 0:
		return fmt.Sprintf(" (waited %s)", short(waited))
	case ran > 0:
		return fmt.Sprintf(" (took %s)", short(ran))
	}
	return ""
}

// moment formats a time, with its day if that differs from the day of the line.
func (l *teller) moment(t time.Time) string {
	if text := local(&t); l.day == "" || !strings.HasPrefix(text, l.day) {
		return text
	}
	return t.Local().Format(clock)
}

// name returns the key of another job, or its id if the key cannot be read.
func (l *teller) name(ctx context.Context, id journal.JobID) string {
	if name, known := l.names[id]; known {
		return name
	}
	name := id.String()
	if v, err := l.rt.Job(ctx, quipu.Job{ID: id}); err == nil && v.Job.Key != "" {
		name = v.Job.Key
	}
	l.names[id] = name
	return name
}

// maxFolded bounds the bytes of a value that are printed.
const maxFolded = 200

func (l *teller) value(w io.Writer, name string, v *history.Value) {
	switch {
	case v == nil:
	case v.Missing != "":
		l.line(w, name, "("+v.Missing+")")
	case l.raw:
		l.line(w, name, inert(v.JSON))
	default:
		l.line(w, name, folded(inert(v.JSON)))
	}
}

func (l *teller) line(w io.Writer, name, text string) {
	fmt.Fprintf(w, "%*s%-5s  %s\n", l.margin+l.width+2, "", name, plain(text))
}

// folded cuts a long text and adds its length.
func folded(text string) string {
	if len(text) <= maxFolded {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxFolded], ""), len(text))
}

// short formats a duration with about three digits.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// happened is an event as log prints it in JSON.
type happened struct {
	Key      string     `json:"key"`
	Time     *time.Time `json:"time"`
	Kind     string     `json:"kind"`
	Activity string     `json:"activity,omitempty"`
	DAD      string     `json:"dad,omitempty"`
	Element  *int       `json:"element,omitempty"`
	Text     string     `json:"text"`
	Attempt  int        `json:"attempt,omitempty"`
	Code     int        `json:"code,omitempty"`
	Input    *valueView `json:"input,omitempty"`
	Output   *valueView `json:"output,omitempty"`
	Error    *failure   `json:"error,omitempty"`
	Stack    string     `json:"stack,omitempty"`
	Job      string     `json:"job,omitempty"` // another job
	Due      *time.Time `json:"due,omitempty"`
	WaitedUS int64      `json:"waited_us,omitempty"`
	RanUS    int64      `json:"ran_us,omitempty"`
	Chain    string     `json:"chain,omitempty"` // chain of an effect
	Entry    int64      `json:"entry"`
	Ledger   string     `json:"ledger,omitempty"`
}

// valueView is an input or output in JSON. Missing says why there is none.
type valueView struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Missing string          `json:"missing,omitempty"`
}

func happenedOf(key string, ev *history.Event) happened {
	h := happened{
		Key: key, Time: &ev.Time, Kind: string(ev.Kind), Activity: ev.Activity, DAD: ev.Address, Text: ev.Text,
		Attempt: ev.Attempt, Code: ev.Code, Input: valueOf(ev.Input), Output: valueOf(ev.Output),
		Error:    failureOf(ev.Error),
		WaitedUS: ev.Waited.Microseconds(), RanUS: ev.Ran.Microseconds(), Entry: ev.Seq,
	}
	if ev.Element >= 0 {
		h.Element = &ev.Element
	}
	if ev.Error != nil {
		h.Stack = ev.Error.Stack
	}
	if !ev.Job.IsZero() {
		h.Job = ev.Job.String()
	}
	if !ev.Due.IsZero() {
		h.Due = &ev.Due
	}
	if !ev.Chain.IsZero() {
		h.Chain = ev.Chain.String()
	}
	if ev.Ledger != 0 {
		h.Ledger = ev.Ledger.String()
	}
	return h
}

func valueOf(v *history.Value) *valueView {
	if v == nil {
		return nil
	}
	return &valueView{raw(v.JSON), v.Missing}
}
