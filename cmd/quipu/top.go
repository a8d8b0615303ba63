package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/look"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// rateOver is the time over which rates are taken.
const rateOver = 10 * time.Second

// Most rows of a frame.
const (
	maxTopTopics = 30
	maxTopFlows  = 15
)

func (a *app) topCommand() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what happens in the space now",
		Long: `Show what happens in the space now: living processes, jobs that begin and end, topics
with what is queued and running, open jobs by flow, and what is stuck. In a terminal the
picture is drawn again about once a second, until it is interrupted. Elsewhere, and with
--once, it is printed once. With -o json each look is one line.

Rates of jobs are those of the last 10 s, by the clock of this machine; jobs that end are told
from the open ones, so not at the first look. RUNS/S are the attempts of handlers that ended,
over the last minute, in the Go processes that live. Numbers are counted up to a limit: of jobs 100000
of a flow, of anything else 10000. Queues are read from NATS (--nats), with the rights of
an engine; without it QUEUED and OLDEST are empty. Topics that nobody serves come first.
LONGEST is how long ago the request was sent whose run has gone on longest. STUCK is what is
wrong, the worst first: what stops a process (it says the same at /readyz), what waits for a
person, what nobody serves, and handlers that have run for over 10 minutes.`,
		Example: "  quipu top\n  quipu top --once -o json",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&once, "once", false, "print it once")
	cmd.RunE = a.run(watches, func(ctx context.Context, rt *quipu.Runtime, _ []string) error {
		return a.top(ctx, rt, once)
	})
	return cmd
}

func (a *app) top(ctx context.Context, rt *quipu.Runtime, once bool) error {
	s := &screen{w: a.streams.Out}
	show := func(f *frame) error { return s.draw(f.print) }
	switch {
	case a.json():
		show = func(f *frame) error { return a.object(f) }
	case once || !cli.Terminal(a.streams.Out):
		once, show = true, func(f *frame) error { return f.print(a.streams.Out) }
	}
	var seen []opened
	look := func() error {
		f, err := a.frame(ctx, rt)
		if err != nil {
			return err
		}
		seen = f.ends(seen)
		return show(f)
	}
	if once {
		return look()
	}
	return a.every(ctx, look)
}

// frame is what top shows of one moment.
type frame struct {
	Time      time.Time        `json:"time"`
	Space     string           `json:"space"`
	Processes map[string]int64 `json:"processes"` // by role
	Started   float64          `json:"started_per_second"`
	Ended     *float64         `json:"ended_per_second,omitempty"`
	Flows     []flowNow        `json:"flows"`
	Topics    []topicNow       `json:"topics"`
	Stuck     []stuck          `json:"stuck"`
}

type flowNow struct {
	Flow        string `json:"flow"`
	Open        int64  `json:"open"`
	Quarantined int64  `json:"quarantined"`
}

type topicNow struct {
	Topic     string   `json:"topic"`
	Queued    *int64   `json:"queued,omitempty"` // nil: not known
	Oldest    float64  `json:"oldest_seconds,omitempty"`
	Running   int64    `json:"running"`
	Longest   float64  `json:"longest_seconds,omitempty"`
	Rate      float64  `json:"runs_per_second"`
	Processes []string `json:"processes"`
	Elsewhere bool     `json:"elsewhere,omitempty"`
}

// stuck is something that waits for a person, or for too long.
type stuck struct {
	What   string  `json:"what"`
	N      int64   `json:"n"`
	Oldest float64 `json:"oldest_seconds,omitempty"`
	Help   string  `json:"help"`
}

// frame looks at the space.
func (a *app) frame(ctx context.Context, rt *quipu.Runtime) (*frame, error) {
	f := &frame{
		Time: time.Now().UTC(), Space: a.spaceName(), Flows: []flowNow{}, Topics: []topicNow{}, Stuck: []stuck{},
	}
	g, err := below.Of(rt).Gauges(ctx)
	if err != nil {
		return nil, err
	}
	begun, err := rt.CountJobs(ctx, quipu.JobFilter{From: f.Time.Add(-rateOver)})
	if err != nil {
		return nil, err
	}
	topics, err := rt.Topics(ctx)
	if err != nil {
		return nil, err
	}
	f.Processes, f.Started = g.Processes, float64(begun.Looked)/rateOver.Seconds()
	f.flows(g)
	f.topics(topics)
	wrong, err := look.Wrong(ctx, rt, &health.Sight{Gauges: g, Topics: look.Topics(topics)})
	if err != nil {
		return nil, err
	}
	f.stuck(wrong)
	return f, nil
}

func (f *frame) flows(g *store.Gauges) {
	all := map[string]*flowNow{}
	for of, n := range g.Jobs {
		if n == 0 {
			continue
		}
		if all[of.Flow] == nil {
			all[of.Flow] = &flowNow{Flow: of.Flow}
		}
		if of.State == journal.JobQuarantined {
			all[of.Flow].Quarantined = n
		} else {
			all[of.Flow].Open = n
		}
	}
	for _, x := range all {
		f.Flows = append(f.Flows, *x)
	}
	slices.SortFunc(f.Flows, func(x, y flowNow) int {
		return cmp.Or(cmp.Compare(y.Open, x.Open), cmp.Compare(x.Flow, y.Flow))
	})
}

// topics lists the topics: first those that nobody serves, then by what waits and runs.
func (f *frame) topics(all []quipu.Topic) {
	slices.SortStableFunc(all, func(x, y quipu.Topic) int {
		return cmp.Or(look.Unserved(&x, &y), cmp.Compare(y.Queued, x.Queued), cmp.Compare(y.Running, x.Running))
	})
	for _, t := range all {
		x := topicNow{
			Topic: t.Name, Oldest: t.Oldest.Seconds(), Running: t.Running, Longest: t.Longest.Seconds(), Rate: t.Rate,
			Processes: append([]string{}, t.Processes...), Elsewhere: t.Elsewhere,
		}
		if t.Queued != quipu.QueueUnknown {
			x.Queued = &t.Queued
		}
		f.Topics = append(f.Topics, x)
	}
}

// stuck lists what is wrong with the space.
func (f *frame) stuck(wrong []health.Finding) {
	for i := range wrong {
		x := &wrong[i]
		f.Stuck = append(f.Stuck, stuck{x.Text, x.N, x.For.Seconds(), x.Command})
	}
}

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
	fmt.Fprintf(w, "%s  %s  %s\n", f.Time.Local().Format(time.DateTime), plain(f.Space), f.roles())
	fmt.Fprintf(w, "jobs: %d open, %.1f/s begin", f.open(), f.Started)
	if f.Ended != nil {
		fmt.Fprintf(w, ", %.1f/s end", *f.Ended)
	}
	fmt.Fprint(w, "\n\n")
	t := newTable(w, "STUCK", "NUMBER", "OLDEST", "LOOK AT")
	for _, x := range f.Stuck {
		t.row(x.What, x.N, seconds(x.Oldest), x.Help)
	}
	if len(f.Stuck) == 0 {
		t = newTable(w)
		t.row("nothing is stuck" + f.unseen())
	}
	topics := newTable(w, "TOPIC", "QUEUED", "OLDEST", "RUNNING", "LONGEST", "RUNS/S", "SERVED BY")
	for _, x := range f.Topics[:min(len(f.Topics), maxTopTopics)] {
		queued, by := "", "nobody"
		if x.Queued != nil {
			queued = fmt.Sprint(*x.Queued)
		}
		switch {
		case len(x.Processes) > 0:
			by = strings.Join(x.Processes, " ")
		case x.Elsewhere:
			by = "(another language)"
		}
		topics.row(x.Topic, queued, seconds(x.Oldest), x.Running, seconds(x.Longest), look.Rate(x.Rate), by)
	}
	flows := newTable(w, "FLOW", "OPEN", "QUARANTINED")
	for _, x := range f.Flows[:min(len(f.Flows), maxTopFlows)] {
		flows.row(x.Flow, x.Open, x.Quarantined)
	}
	return sections(w, t, topics, flows)
}

// unseen says what the frame cannot tell; "" for nothing.
func (f *frame) unseen() string {
	if slices.ContainsFunc(f.Topics, func(x topicNow) bool { return x.Queued != nil }) {
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

// seconds is a time for people; "" for none.
func seconds(s float64) string {
	if s <= 0 {
		return ""
	}
	return (time.Duration(s*1000) * time.Millisecond).Round(100 * time.Millisecond).String()
}
