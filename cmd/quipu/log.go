package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
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
		return a.ask(cmd, looks, func(ctx context.Context, from source) error {
			l.from = from
			return a.each(cmd, keys, func(key string) error { return l.log(ctx, key, follow) })
		})
	})
}

// teller prints the histories of jobs.
type teller struct {
	*app
	from        source
	raw, digits bool
	names       map[journal.JobID]string      // keys of other jobs
	orders      map[journal.JobID]*view.Order // what awaits ordered
	key         string                        // key of the job
	day         string                        // day of the previous event
	margin      int                           // space to the left of the column of activities
	width       int                           // width of that column
	more        string                        // what shows the rest of errors
	said        said                          // the last error
}

// lookAgain is the pause between two looks at a job that is followed.
const lookAgain = 500 * time.Millisecond

func (l *teller) log(ctx context.Context, key string, follow bool) error {
	l.day, l.width, l.said = "", 0, said{}
	type entry struct {
		chain journal.GUID
		seq   int64
	}
	told := map[entry]bool{}
	for of, first := key, true; ; first = false {
		began := time.Now()
		v, err := l.from.Job(ctx, of, view.Want{Events: true})
		if err != nil {
			return err
		}
		if first && !l.json() {
			fmt.Fprintf(l.streams.Out, "job %s, flow %s version %s, started %s\n", plain(v.Key), v.Flow, v.Version, local(v.Started))
		}
		l.key, of = v.Key, v.ID.String() // also when another generation has the key
		for i := range v.Events {
			l.width = max(l.width, min(len(l.who(&v.Events[i])), maxWho))
		}
		fresh := map[entry]bool{}
		for i := range v.Events {
			at := entry{v.Events[i].Chain, v.Events[i].Entry}
			if told[at] {
				continue
			}
			fresh[at] = true
			if err := l.event(ctx, key, &v.Events[i]); err != nil {
				return err
			}
		}
		maps.Copy(told, fresh)
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
func (l *teller) lost(v *view.Job) {
	for i := range v.Messages {
		if m := &v.Messages[i]; m.Lost > 0 && !l.json() {
			fmt.Fprintf(l.streams.Out, "%s, attempt %d: %d of its runs ended without an answer, with the process or its connection (quipu why %s)\n",
				plain(m.Activity), m.Attempt, m.Lost, plain(v.Key))
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

// maxWho bounds the column of activities, in bytes.
const maxWho = 32

// happened is an event of the job with a key.
type happened struct {
	Key string `json:"key"`
	*view.Event
}

func (l *teller) event(ctx context.Context, key string, ev *view.Event) error {
	if l.json() {
		return l.object(happened{key, ev})
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
func (l *teller) who(ev *view.Event) string {
	who := listed(ev.Activity, ev.Element)
	switch pass := ev.Pass; {
	case l.digits:
		who += " " + ev.Address
	case pass > 1:
		who += fmt.Sprintf(" (pass %d)", pass)
	}
	return who
}

// what describes an event in words, on request with the place of its entry.
func (l *teller) what(ctx context.Context, ev *view.Event, digits bool) string {
	what := ev.Text + l.other(ctx, ev)
	switch {
	case ev.Due.IsZero():
	case ev.Kind == view.KindWaits:
		what += " until " + l.moment(ev.Due)
	case ev.Kind == view.KindAttempt:
		what += "; the next is due at " + l.moment(ev.Due)
	default:
		what += ", due at " + l.moment(ev.Due)
	}
	what += times(ev.Waited, ev.Ran)
	if digits {
		what += fmt.Sprintf("  #%d", ev.Entry)
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
func (l *teller) other(ctx context.Context, ev *view.Event) string {
	if ev.Job.IsZero() {
		return ""
	}
	if ev.Child != nil {
		if l.orders == nil {
			l.orders = map[journal.JobID]*view.Order{}
		}
		l.orders[ev.Job] = ev.Child
	}
	name := l.name(ctx, ev.Job)
	switch own := name == l.key; {
	case own && ev.Kind == view.KindStarted:
		return "; the earlier job is " + ev.Job.String()
	case own && ev.Kind == view.KindOperator:
		return " as job " + ev.Job.String()
	case ev.Kind == view.KindStarted || ev.Kind == view.KindWoke || ev.Kind == view.KindDone ||
		ev.Kind == view.KindFailed:
		return " (" + name + ")"
	}
	return " " + name
}

// times says how long something waited and ran, as far as that is known.
func times(waited, ran view.Duration) string {
	switch {
	case waited > 0 && ran > 0:
		return fmt.Sprintf(" (waited %s, took %s)", short(time.Duration(waited)), short(time.Duration(ran)))
	case waited > 0:
		return fmt.Sprintf(" (waited %s)", short(time.Duration(waited)))
	case ran > 0:
		return fmt.Sprintf(" (took %s)", short(time.Duration(ran)))
	}
	return ""
}

// moment formats a time, with its day if that differs from the day of the line.
func (l *teller) moment(t time.Time) string {
	if text := local(t); l.day == "" || !strings.HasPrefix(text, l.day) {
		return text
	}
	return t.Local().Format(clock)
}

// name returns the key of another job, or its id if the key cannot be read. One that has not begun is
// named by what it was to be.
func (l *teller) name(ctx context.Context, id journal.JobID) string {
	if name, known := l.names[id]; known {
		return name
	}
	name := id.String()
	v, err := l.from.Job(ctx, name, view.Want{})
	switch order := l.orders[id]; {
	case err == nil && v.Key != "":
		name = v.Key
	case errors.Is(err, quipu.ErrNotFound) && order != nil:
		return fmt.Sprintf("%s of flow %s, which has not begun", order.Key, order.Flow)
	}
	l.names[id] = name
	return name
}

// maxFolded bounds the bytes of a value that are printed.
const maxFolded = 200

func (l *teller) value(w io.Writer, name string, v *view.Value) {
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
