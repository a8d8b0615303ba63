package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/inspect/spans"
	"github.com/quipu-journal/quipu/telemetry"
	"github.com/quipu-journal/quipu/view"
)

func (a *app) traceCommand() *cobra.Command {
	var t tracer
	cmd := &cobra.Command{
		Use:   "trace KEY... | trace -",
		Short: "Print the traces of jobs, or send them to a collector",
		Long: `Make the trace of jobs from their journals: the job, its activities, and in each the
dispatch, the attempts (queued, run, effects), what it waited for between them, and the
messages with their steps. One span per line: when it began after the job, how long it
took, its name. In the column of times "…" is a span that is still open.

--otlp sends the spans to a collector, such as Jaeger, instead of printing them. They are
the spans, with the same ids, that a worker sends when the job has ended. So what was
sampled away, lost or forgotten is there again. What is sent twice is the same bytes, which
docs/traces.md says what collectors do with. Of an open job what has ended is sent: send it
again later for the rest.

--svg prints a picture instead. -o json prints one object per span. A journal has at most
` + strconv.Itoa(inspect.MaxTrace) + ` entries.`,
		Example: "  quipu trace order-42\n  quipu ls --keys --limit 0 | quipu trace - --otlp http://localhost:4318",
		Args:    cli.Args(1, -1),
	}
	f := cmd.Flags()
	f.StringVar(&t.otlp, "otlp", "", "`URL` of the collector that gets the spans, by OTLP over HTTP")
	f.BoolVar(&t.svg, "svg", false, "print a picture of one job")
	f.BoolVar(&t.text, "trace-errors", false, "put the text of errors into spans, as the workers do that have this flag")
	return a.ofKeys(cmd, func(cmd *cobra.Command, keys []string) error {
		if t.svg && (len(keys) > 1 || t.otlp != "") {
			return cli.Exitf(cli.CodeUsage, "--svg: give one key, and no --otlp")
		}
		return a.ask(cmd, reads, func(ctx context.Context, from source) error {
			return t.run(ctx, cmd, a, from, keys)
		})
	})
}

// tracer prints or sends the traces of jobs.
type tracer struct {
	otlp      string
	svg, text bool
}

func (t *tracer) run(ctx context.Context, cmd *cobra.Command, a *app, from source, keys []string) error {
	show := func(x *view.Tree) error { return a.printTrace(x) }
	switch {
	case t.svg:
		show = func(x *view.Tree) error { return picture(a.streams.Out, x) }
	case t.otlp != "":
		tel, shutdown, err := telemetry.New(ctx, telemetry.Config{
			Endpoint: t.otlp, Space: a.spaceName(), ErrorText: t.text,
			Getenv: func(string) string { return "" }, // whatever is sampled, and no metrics
		})
		if err != nil {
			return cli.Exit(cli.CodeUsage, err)
		}
		defer a.flush(ctx, shutdown)
		show = func(x *view.Tree) error { return a.sendTrace(ctx, tel, x) }
	}
	return a.each(cmd, keys, func(key string) error {
		x, err := from.Job(ctx, key, view.Want{Tree: true})
		if err != nil {
			return err
		}
		return show(x.Tree)
	})
}

// sendTrace sends what has ended of a tree.
func (a *app) sendTrace(ctx context.Context, tel *telemetry.Telemetry, x *view.Tree) error {
	if err := tel.Trees(ctx, x); err != nil {
		return err
	}
	sent := len(x.Ended())
	fmt.Fprintf(a.streams.Out, "%s  trace %s  %s sent", plain(x.Key), x.Context.Trace, counted(sent, "span"))
	if open := len(x.Spans) - sent; open > 0 {
		fmt.Fprintf(a.streams.Out, ", %d are still open", open)
	}
	fmt.Fprintln(a.streams.Out)
	return nil
}

// printTrace prints a tree, one span per line.
func (a *app) printTrace(x *view.Tree) error {
	depths := x.Depths()
	if a.json() {
		for i := range x.Spans {
			if err := a.object(spanLine{x.Key, x.Context.Trace, &x.Spans[i]}); err != nil {
				return err
			}
		}
		return nil
	}
	w := a.streams.Out
	fmt.Fprintf(w, "job %s, trace %s, %s\n", plain(x.Key), x.Context.Trace, x.State)
	for i := range x.Spans {
		s := &x.Spans[i]
		took := "…"
		if s.End != 0 {
			took = short(micros(s.End - s.Start))
		}
		fmt.Fprintf(w, "%9s  %9s  %s%s%s\n", "+"+short(micros(s.Start-x.Spans[0].Start)), took,
			strings.Repeat("  ", depths[i]), plain(s.Name()), plain(details(s)))
	}
	return nil
}

// details are the attributes of a span that a reader of the tree needs.
func details(s *view.Span) string {
	var b strings.Builder
	for _, a := range s.Attributes {
		switch a.Key {
		case "quipu.attempt", "quipu.turn":
			if a.Number > 1 && s.Part == spans.PartAttempt {
				fmt.Fprintf(&b, " %s=%d", strings.TrimPrefix(a.Key, "quipu."), a.Number)
			}
		case "quipu.element", "quipu.pass", "quipu.abandoned", "quipu.late", "quipu.taken_over":
			fmt.Fprintf(&b, " %s=%d", strings.TrimPrefix(a.Key, "quipu."), a.Number)
		case "quipu.by", "quipu.action", "quipu.who", "quipu.state":
			fmt.Fprintf(&b, " %s=%s", strings.TrimPrefix(a.Key, "quipu."), a.Text)
		case "quipu.ledger.after":
			fmt.Fprintf(&b, "  %s", a.Text)
		}
	}
	if f := s.Failure; f != nil {
		fmt.Fprintf(&b, "  failed: %s", cmp.Or(f.Class, strconv.Itoa(s.Code)))
	}
	return b.String()
}

// spanLine is a span with the job and the trace that it is of.
type spanLine struct {
	Key   string       `json:"key"`
	Trace view.TraceID `json:"trace"`
	span  *view.Span
}

// MarshalJSON writes the members of the span behind those of its job.
func (l spanLine) MarshalJSON() ([]byte, error) {
	type members spanLine // without this method
	head, err := json.Marshal(members(l))
	if err != nil {
		return nil, err
	}
	span, err := json.Marshal(l.span)
	return append(append(head[:len(head)-1], ','), span[1:]...), err
}
