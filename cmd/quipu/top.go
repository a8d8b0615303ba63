package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/view"
)

// rateOver is the time over which the rate of ends is taken.
const rateOver = 10 * time.Second

// Most rows of a frame.
const (
	maxTopTopics = 30
	maxTopFlows  = 15
	maxTopFailed = 8
)

func (a *app) topCommand() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what happens in the space now",
		Long: `Show what happens in the space now: living processes, jobs that begin and end, topics
with what is queued and running, open jobs by flow, what failed in the last hour and was
not resumed, and what is stuck. In a terminal the
picture is drawn again about once a second, until it is interrupted. Elsewhere, and with
--once, it is printed once. With -o json each look is one line.

Rates of jobs are those of the last 10 s; jobs that end are told from the open ones, so not
at the first look. RUNS/S are the attempts of handlers that ended,
over the last minute, in the Go processes that live. Numbers are counted up to a limit: of jobs 100000
of a flow, of anything else 10000. Queues are read from NATS (--nats), with the rights of
an engine; without it QUEUED and OLDEST are empty. Topics that nobody serves come first.
LONGEST is how long ago the request was sent whose run has gone on longest. STUCK is what is
wrong, the worst first: what stops a process (it says the same at /readyz), what waits for a
person, what nobody serves, and handlers that have run for over 10 minutes.

Of topics whose runs may begin before what caused them has committed (workers.Early), there
is what became of such runs over the last minute: KEPT were answered in the same commit, LATE
after it, and the cause of DROPPED did not commit. MEAN RUN is how long a run takes.`,
		Example: "  quipu top\n  quipu top --once -o json",
		Args:    cli.Args(0, 0),
	}
	cmd.Flags().BoolVar(&once, "once", false, "print it once")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		return a.ask(cmd, watches, func(ctx context.Context, from source) error { return a.top(ctx, from, once) })
	})
	return cmd
}

func (a *app) top(ctx context.Context, from source, once bool) error {
	s := &screen{w: a.streams.Out}
	show := func(f *frame) error { return s.draw(f.print) }
	switch {
	case a.json():
		show = func(f *frame) error { return a.object(f.Space) }
	case once || !cli.Terminal(a.streams.Out):
		once, show = true, func(f *frame) error { return f.print(a.streams.Out) }
	}
	var seen []opened
	look := func() error {
		now, err := from.Space(ctx)
		if err != nil {
			return err
		}
		f := &frame{now}
		seen = f.ends(seen)
		return show(f)
	}
	if once {
		return look()
	}
	return a.every(ctx, look)
}

// frame is what top shows of one moment.
type frame struct{ *view.Space }

// opened is how many jobs were open at a time.
type opened struct {
	at   time.Time
	jobs int64
}

// ends tells the rate of ends from what was open before, within rateOver, and returns what the
// next look needs. A flow whose jobs were not all counted has no rate.
func (f *frame) ends(before []opened) []opened {
	now := opened{at: f.Time}
	for _, x := range f.Flows {
		if now.jobs += x.Open; x.Open >= store.MaxGaugedJobs {
			return nil
		}
	}
	before = slices.DeleteFunc(before, func(x opened) bool { return now.at.Sub(x.at) > rateOver })
	if len(before) > 0 {
		first := before[0]
		rate := max(0, f.Started-float64(now.jobs-first.jobs)/now.at.Sub(first.at).Seconds())
		f.Ended = &rate
	}
	return append(before, now)
}

// print prints the frame for people.
func (f *frame) print(w io.Writer) error {
	fmt.Fprintf(w, "%s  %s  %s\n", f.Time.Local().Format(time.DateTime), plain(f.Name), f.roles())
	fmt.Fprintf(w, "jobs: %d open, %.1f/s begin", f.open(), f.Started)
	if f.Ended != nil {
		fmt.Fprintf(w, ", %.1f/s end", *f.Ended)
	}
	fmt.Fprint(w, "\n\n")
	fmt.Fprint(w, f.failing())
	t := newTable(w, "STUCK", "NUMBER", "OLDEST", "LOOK AT")
	for _, x := range f.Stuck {
		t.row(x.What, x.N, seconds(x.Oldest), x.Help)
	}
	if len(f.Stuck) == 0 {
		t = newTable(w)
		t.row("nothing is stuck" + f.unseen())
	}
	topics := f.topics(w)
	flows := newTable(w, "FLOW", "OPEN", "QUARANTINED")
	for _, x := range f.Flows[:min(len(f.Flows), maxTopFlows)] {
		flows.row(x.Flow, x.Open, x.Quarantined)
	}
	return sections(w, t, topics, flows)
}

// topics is the table of topics. Where none is early, it has nothing of that.
func (f *frame) topics(w io.Writer) *table {
	shown := f.Topics[:min(len(f.Topics), maxTopTopics)]
	early := slices.ContainsFunc(shown, func(x view.TopicLoad) bool { return x.Early != nil })
	head := []string{"TOPIC", "QUEUED", "OLDEST", "RUNNING", "LONGEST", "RUNS/S"}
	if early {
		head = append(head, "KEPT", "LATE", "DROPPED", "MEAN RUN")
	}
	t := newTable(w, append(head, "SERVED BY")...)
	for i := range shown {
		x := &shown[i]
		queued, by := "", "nobody"
		if x.Queued != nil {
			queued = fmt.Sprint(*x.Queued)
		}
		switch {
		case len(x.Processes) > 0:
			by = strings.Join(x.Processes, " ")
		case x.Elsewhere:
			by = "(another language, or just ended)"
		}
		row := []any{x.Topic, queued, seconds(x.Oldest), x.Running, seconds(x.Longest), inspect.Rate(x.Rate)}
		switch {
		case x.Early != nil:
			mean := ""
			if x.Early.Mean > 0 {
				mean = short(x.Early.MeanRun())
			}
			row = append(row, x.Early.Kept, x.Early.Late, x.Early.Dropped, mean)
		case early:
			row = append(row, "", "", "", "")
		}
		t.row(append(row, by)...)
	}
	return t
}

// failing is a line about the flows whose jobs failed in the last hour; "": none did.
func (f *frame) failing() string {
	var parts []string
	for _, x := range f.Failing[:min(len(f.Failing), maxTopFailed)] {
		n := fmt.Sprint(x.Failed)
		if x.More {
			n += " or more"
		}
		parts = append(parts, fmt.Sprintf("%s %s, the last %s ago", plain(x.Flow), n, max(0, f.Time.Sub(x.Last)).Truncate(time.Second)))
	}
	switch more := len(f.Failing) - len(parts); {
	case len(parts) == 0:
		return ""
	case more > 0:
		parts = append(parts, fmt.Sprintf("and %s", counted(more, "more flow")))
	}
	return "failed in the last hour: " + strings.Join(parts, "; ") + "  (quipu ls --state failed)\n\n"
}

// unseen says what the frame cannot tell; "" for nothing.
func (f *frame) unseen() string {
	if slices.ContainsFunc(f.Topics, func(x view.TopicLoad) bool { return x.Queued != nil }) {
		return ""
	}
	return ", as far as Postgres says; no queue is seen, so a topic that nobody serves may be missed: give --nats, with the rights of an engine"
}

func (f *frame) open() (n int64) {
	for _, x := range f.Flows {
		n += x.Open
	}
	return n
}

// roles says how many processes live, by role.
func (f *frame) roles() string {
	var parts []string
	for _, role := range slices.Sorted(maps.Keys(f.Processes)) {
		parts = append(parts, fmt.Sprintf("%s %d", role, f.Processes[role]))
	}
	if len(parts) == 0 {
		return "no process lives"
	}
	return "processes: " + strings.Join(parts, ", ")
}
