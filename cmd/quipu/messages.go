package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

func (a *app) messagesCommand() *cobra.Command {
	var guid string
	var at int64
	cmd := &cobra.Command{
		Use:   "messages KEY",
		Short: "Show the messages of a job, with the ledger of each",
		Long: `Print what the journal of a job tells of each of its messages, in the order in which the
journal first names them:

- the entry that sent it, and the one that accepted it
- its kind, its activity and the address of that
- its ledger, the verdict, and what the digits say; the verdict of a message that no entry
  accepts is answered (a request), cancelled, sent (to another job), or open

The digits of a message's ledger, in groups: not used; it closed the job; step 1, its result
is recorded; step 2, what follows was dispatched; step 3, the completion tasks are done; its
number among the messages that its activity accepted. A message without a ledger is done with
the entry that accepts it.

--at shows the messages as they were after an entry of the main chain (quipu log --digits
numbers the entries). --guid shows one message, what its digits mean, what caused it, and
what it caused. A job with more than ` + strconv.Itoa(quipu.MaxHistory) + ` entries is not read.`,
		Example: "  quipu messages order-42\n  quipu messages order-42 --at 7\n  quipu messages order-42 --guid 1f0c9a5e-…",
		Args:    cli.Args(1, 1),
	}
	cmd.Flags().StringVar(&guid, "guid", "", "show the message with this `GUID`, or the only one whose GUID begins so")
	cmd.Flags().Int64Var(&at, "at", 0, "as they were after the `ENTRY`")
	return a.ofKeys(cmd, func(cmd *cobra.Command, keys []string) error {
		if at < 0 {
			return cli.Exitf(cli.CodeUsage, "--at %d: entries count from 1", at)
		}
		return a.ask(cmd, looks, func(ctx context.Context, from source) error {
			job, err := from.Job(ctx, keys[0], view.Want{Messages: true, At: at})
			if err != nil {
				return err
			}
			if guid != "" {
				return a.oneMessage(job.Messages, strings.ToLower(guid))
			}
			return a.allMessages(job.Messages)
		})
	})
}

// allMessages prints a line for each message.
func (a *app) allMessages(all []view.Message) error {
	t := newTable(a.streams.Out, "SENT", "ACCEPTED", "KIND", "ACTIVITY", address, "LEDGER", "VERDICT", "GUID")
	for i := range all {
		m := &all[i]
		if err := a.item(t, m, cmp.Or(numbered("", m.Since), "outside"), numbered("", m.Accepted), m.Kind, m.Activity, m.Address,
			messageLedger(m), cmp.Or(m.Verdict, "open"), m.GUID); err != nil {
			return err
		}
	}
	return t.flush()
}

// oneMessage prints one message with what caused it and what it caused.
func (a *app) oneMessage(all []view.Message, guid string) error {
	byGUID := make(map[journal.GUID]*view.Message, len(all))
	var found []*view.Message
	for i := range all {
		byGUID[all[i].GUID] = &all[i]
		if strings.HasPrefix(all[i].GUID.String(), guid) {
			found = append(found, &all[i])
		}
	}
	switch {
	case len(found) == 0:
		return cli.Exitf(codeNotFound, "no message of the job has a GUID that begins with %q (yet)", guid)
	case len(found) > 1:
		return cli.Exitf(cli.CodeUsage, "%d messages of the job have a GUID that begins with %q: give more of it", len(found), guid)
	}
	m := found[0]
	if a.json() {
		return a.object(m)
	}
	out := a.streams.Out
	fmt.Fprintf(out, "%s %s of %s at %s\n", m.Kind, m.GUID, plain(m.Activity), m.Address)
	fmt.Fprintf(out, "  ledger    %s\n", cmp.Or(strings.TrimSpace(messageLedger(m)+"  "+m.Says), "none"))
	if m.Ledger != nil {
		for _, d := range inspect.MessageDigits(*m.Ledger) {
			fmt.Fprintf(out, "            %-8s  %s\n", d.Text, d.Means)
		}
	}
	fmt.Fprintf(out, "  verdict   %s\n", cmp.Or(m.Verdict, "open"))
	fmt.Fprintf(out, "  sent      %s\n", cmp.Or(numbered("by entry ", m.Since), "not by an entry of this job"))
	fmt.Fprintf(out, "  accepted  %s\n", cmp.Or(numbered("by entry ", m.Accepted), "by no entry"))
	named := func(guid journal.GUID) string {
		if other := byGUID[guid]; other != nil {
			return fmt.Sprintf("%s of %s %s", other.Kind, plain(other.Activity), guid)
		}
		return guid.String()
	}
	if !m.CausedBy.IsZero() {
		fmt.Fprintf(out, "  cause     %s\n", named(m.CausedBy))
	}
	for i, guid := range m.Causes {
		if i == maxRows {
			fmt.Fprintf(out, "            … and %d more\n", len(m.Causes)-maxRows)
			break
		}
		fmt.Fprintf(out, "  caused    %s\n", named(guid))
	}
	return nil
}

// messageLedger has the digits of a message in their groups; "": it has no ledger.
func messageLedger(m *view.Message) string {
	if m.Ledger == nil {
		return ""
	}
	return grouped(*m.Ledger, ofMessage)
}

// numbered is a text with the number of an entry; "": there is none.
func numbered(text string, seq int64) string {
	if seq == 0 {
		return ""
	}
	return text + strconv.FormatInt(seq, 10)
}
