package main

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/look"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

func (a *app) replayCommand() *cobra.Command {
	var at int64
	cmd := &cobra.Command{
		Use:   "replay KEY... | replay -",
		Short: "Show jobs as they were at an entry",
		Long: `Show the state of jobs at an entry of their journal, rebuilt from the entries alone:
ledgers, open obligations, rows with their attempts and due times, waits, and children.
No handler runs. Effects are left out, because they have chains of their own.`,
		Example: "  quipu replay order-42 --at 7",
		Args:    cli.Args(1, -1),
	}
	cmd.Flags().Int64Var(&at, "at", 0, "`SEQ` of the entry; default: the last")
	return a.ofKeys(cmd, func(cmd *cobra.Command, keys []string) error {
		if at < 0 || at == 0 && cmd.Flags().Changed("at") {
			return cli.Exitf(cli.CodeUsage, "--at %d: entries are counted from 1", at)
		}
		return a.with(cmd, looks, func(ctx context.Context, rt *quipu.Runtime) error {
			return a.each(cmd, keys, func(key string) error { return a.replay(ctx, rt, key, at) })
		})
	})
}

func (a *app) replay(ctx context.Context, rt *quipu.Runtime, key string, at int64) error {
	job, err := look.Find(ctx, rt, key)
	if err != nil {
		return err
	}
	var was *replay.Job
	var last *journal.Entry
	var head int64
	err = below.Of(rt).Audit(ctx, job.ID, func(s *store.Stored, records iter.Seq2[journal.Record, error]) (err error) {
		head = s.Job.Head.Seq
		was = replay.New(replay.Header{Space: s.Job.Space, Job: s.Job.ID, Key: s.Job.Key, Generation: s.Job.Generation})
		last, err = rewind(was, records, at)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("replay job %q: %w", key, err)
	case last == nil || at > last.Seq:
		return cli.Exitf(codeRefused, "job %q: --at %d: its journal has %s", key, at, entries(head))
	case a.json():
		return a.object(pastOf(was, last))
	}
	p := pastOf(was, last)
	return a.printPast(&p, last, head)
}

func entries(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// rewind applies the entries of the main chain up to number at, or all if at is 0, and returns
// the last one.
func rewind(was *replay.Job, records iter.Seq2[journal.Record, error], at int64) (*journal.Entry, error) {
	var last journal.Record
	for r, err := range records {
		switch {
		case err != nil:
			return nil, err
		case !r.Chain.IsZero():
			continue // effect chains
		}
		if err := was.Apply(r); err != nil {
			return nil, err
		}
		if last = r; r.Seq == at {
			break
		}
	}
	if last.Seq == 0 {
		return nil, nil
	}
	return journal.Decode(last)
}

// printPast prints a job as it was at an entry.
func (a *app) printPast(p *past, e *journal.Entry, head int64) error {
	w := a.streams.Out
	fmt.Fprintf(w, "job      %s (%s)\n", plain(p.Key), p.Job)
	fmt.Fprintf(w, "flow     %s version %s\n", p.Flow, p.Version)
	fmt.Fprintf(w, "at       entry %d of %d: %s %s, %s\n", e.Seq, head, e.Kind, place(e.Activity, e.DAD), at(collation.Micros(e.Time)))
	fmt.Fprintf(w, "state    %s; open obligations: %d\n\n", p.State, p.Semaphore)
	t := newTable(w, "ACTIVITY", "ADDRESS", "LEDGER", "CODE", "").bounded()
	for i := range p.Instances {
		instanceRow(t, &p.Instances[i])
	}
	o := newTable(w, "OPEN OBLIGATION", "ADDRESS", "SINCE ENTRY").bounded()
	for _, x := range p.Obligations {
		o.row(x.Activity, x.DAD, x.Since)
	}
	r := newTable(w, "OPEN ROW", "ACTIVITY", "ADDRESS", "TOPIC", "TURN", "TRY", "DUE", "HELD", "SINCE ENTRY").bounded()
	for _, x := range p.Rows {
		r.row(x.Kind, x.Activity, x.DAD, x.Topic, x.Turn, x.Attempt, local(x.Next), x.Held, x.Since)
	}
	c := newTable(w, "CHILD", "ACTIVITY", "ADDRESS", "TURN", "STARTS", "SINCE ENTRY").bounded()
	for _, x := range p.Children {
		c.row(x.Job, x.Activity, x.DAD, x.Turn, local(x.Starts), x.Since)
	}
	return sections(w, t, o, r, waits(w, p.Waits, true), c, pauses(w, p.Pauses))
}

// pauses lists the waits of durable functions, open and over.
func pauses(w io.Writer, all []pause) *table {
	t := newTable(w, "FUNCTION", "ADDRESS", "WAITS FOR", "POSITION", "DUE", "SINCE ENTRY", "").bounded()
	for _, x := range all {
		how := "waits"
		switch {
		case x.Came > 0:
			how = fmt.Sprintf("came with entry %d", x.Came)
		case !x.Waits:
			how = "taken back"
		}
		t.row(x.Activity, x.DAD, fmt.Sprintf("%s %q", x.Kind, x.Name), x.Position, local(x.Due), x.Since, how)
	}
	return t
}

func place(activity, dad string) string {
	if activity == "" {
		return "of the job"
	}
	return activity + " at " + dad
}
