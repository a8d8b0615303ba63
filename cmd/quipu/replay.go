package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/view"
)

func (a *app) replayCommand() *cobra.Command {
	var at int64
	cmd := &cobra.Command{
		Use:   "replay KEY... | replay -",
		Short: "Show jobs as they were at an entry",
		Long: `Show the state of jobs at an entry of their journal, rebuilt from the entries alone:
ledgers, open obligations, rows with their attempts and due times, waits, and children.
No handler runs. -o json prints the job as show does, with its effects. A job with more than
` + strconv.Itoa(quipu.MaxHistory) + ` entries is not read.`,
		Example: "  quipu replay order-42 --at 7",
		Args:    cli.Args(1, -1),
	}
	cmd.Flags().Int64Var(&at, "at", 0, "`SEQ` of the entry; default: the last")
	return a.ofKeys(cmd, func(cmd *cobra.Command, keys []string) error {
		if at < 0 || at == 0 && cmd.Flags().Changed("at") {
			return cli.Exitf(cli.CodeUsage, "--at %d: entries are counted from 1", at)
		}
		return a.ask(cmd, looks, func(ctx context.Context, from source) error {
			return a.each(cmd, keys, func(key string) error { return a.replay(ctx, from, key, at) })
		})
	})
}

func (a *app) replay(ctx context.Context, from source, key string, at int64) error {
	now, err := from.Job(ctx, key, view.Want{})
	switch {
	case err != nil:
		return err
	case at > now.Entries:
		return cli.Exitf(codeRefused, "job %q: --at %d: its journal has %s", key, at, entries(now.Entries))
	}
	j, err := from.Job(ctx, now.ID.String(), view.Want{
		At: cmp.Or(at, now.Entries), Graph: true, Effects: true, Journal: true,
	})
	switch {
	case err != nil:
		return fmt.Errorf("replay job %q: %w", key, err)
	case a.json():
		return a.object(j)
	}
	return a.printPast(j)
}

// printPast prints a job as it was at an entry.
func (a *app) printPast(j *view.Job) error {
	w := a.streams.Out
	fmt.Fprintf(w, "job      %s (%s)\n", plain(j.Key), j.ID)
	fmt.Fprintf(w, "flow     %s version %s\n", j.Flow, j.Version)
	fmt.Fprintf(w, "at       entry %d of %d: %s %s, %s\n", j.At.Entry, j.At.Of, j.At.Kind,
		place(j.At.Activity, j.At.Address), local(j.At.Time))
	fmt.Fprintf(w, "state    %s; open obligations: %d\n\n", j.State, j.Semaphore)
	t := newTable(w, "ACTIVITY", "ADDRESS", "LEDGER", "CODE", "").bounded()
	instances(t, j, func(x, y *view.Activity) int { // the outer ones first
		return cmp.Or(cmp.Compare(collation.DAD(x.Address).Depth(), collation.DAD(y.Address).Depth()),
			cmp.Compare(x.Activity, y.Activity))
	})
	o := newTable(w, "OPEN OBLIGATION", "ADDRESS", "SINCE ENTRY").bounded()
	for _, x := range j.Obligations {
		o.row(x.Activity, x.Address, x.SinceEntry)
	}
	r := newTable(w, "OPEN ROW", "ACTIVITY", "ADDRESS", "TOPIC", "TURN", "TRY", "DUE", "HELD", "SINCE ENTRY").bounded()
	for i := range j.Messages {
		m := &j.Messages[i]
		due := m.Due
		if m.Sends > 0 {
			due = m.Sent
		}
		r.row(m.Kind, m.Activity, m.Address, m.Topic, m.Turn, m.Attempt, local(due), m.Held, m.Since)
	}
	c := newTable(w, "CHILD", "ACTIVITY", "ADDRESS", "TURN", "STARTS", "SINCE ENTRY").bounded()
	for i := range j.Children {
		x := &j.Children[i]
		c.row(x.ID, x.Activity, x.Address, x.Turn, local(x.Starts), x.SinceEntry)
	}
	return sections(w, t, o, r, waits(w, j.Waits, true), c, pauses(w, j.Pauses))
}

// pauses lists the waits of durable functions, open and over.
func pauses(w io.Writer, all []view.Pause) *table {
	t := newTable(w, "FUNCTION", "ADDRESS", "WAITS FOR", "POSITION", "DUE", "SINCE ENTRY", "").bounded()
	for _, x := range all {
		how := "waits"
		switch {
		case x.CameEntry > 0:
			how = fmt.Sprintf("came with entry %d", x.CameEntry)
		case !x.Waits:
			how = "taken back"
		}
		t.row(x.Activity, x.Address, fmt.Sprintf("%s %q", x.Kind, x.Name), x.Position, local(x.Due), x.SinceEntry, how)
	}
	return t
}

func place(activity, dad string) string {
	if activity == "" {
		return "of the job"
	}
	return activity + " at " + dad
}
