package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// decision has the person who decides on dead letters, and the reason; both go to the journal.
type decision struct{ who, reason string }

func (d *decision) define(a *app, cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.who, "who", "", "`NAME` of who decides, for the journal; default: the user; with --api it is that of the token")
	cmd.Flags().StringVar(&d.reason, "reason", "", "`TEXT` that says why, for the journal")
}

func (a *app) deadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "List dead letters and decide on them",
		Long: `List dead letters and decide on them. A dead letter is a message that cannot go on
by itself. Its row is held until somebody decides, or its answer comes after all.
Every decision is an entry in the journal, with who and why.

For a request to a worker:

- it may be tried again: retry
- it is parked for an effect, and the effect was done: done
- it is parked for an effect, and the effect was not done: retry
- the whole request has succeeded, and you know its result: resolve
- it has failed, and shall end with an error: fail

A request is parked for an effect when nobody knows whether a call to the outside was
applied, or when the verifier of the effect contradicts its recorded result. Look at the
receiver first.

Any other message (a wake-up, the outcome of an awaited job, a cycle, the dispatch of an
activity) has no result that somebody else could give: retry it, or interrupt its job.`,
		Args: cli.Args(0, 0),
	}
	cmd.AddCommand(a.deadLsCommand(), a.deadRetryCommand(), a.deadDoneCommand(), a.deadResolveCommand(),
		a.deadFailCommand())
	return cmd
}

func (a *app) deadLsCommand() *cobra.Command {
	var f quipu.DeadLetterFilter
	var from, to string
	var limit int
	var ids bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List dead letters",
		Long: `List dead letters, newest first: the open ones, or all with --all. --ids prints ids
alone, for a decision on the whole list. --prefix, --from and --to are compared with each
dead letter, as the other filters are. The newest 1 000 of messages that belong to nothing
in the space are kept; a line on stderr says how many older ones were dropped.`,
		Example: "  quipu dead ls --flow order --reason parked\n" +
			"  quipu dead ls --topic payments.charge --limit 0 --ids | quipu dead retry - --reason \"the provider is back\"",
		Args: cli.Args(0, 0),
	}
	cmd.Flags().BoolVar(&f.All, "all", false, "also those that have ended")
	cmd.Flags().StringVar(&f.Flow, "flow", "", "only of jobs of this `FLOW`")
	cmd.Flags().StringVar(&f.Topic, "topic", "", "only requests of this `TOPIC`")
	cmd.Flags().StringVar((*string)(&f.Reason), "reason", "", "only with this `REASON`, such as parked")
	cmd.Flags().StringVar(&f.Prefix, "prefix", "", "only of jobs whose key begins with this `TEXT`")
	cmd.Flags().StringVar(&from, "from", "", "only those of this `TIME` or later: RFC 3339, or how long ago, such as 24h")
	cmd.Flags().StringVar(&to, "to", "", "only those before this `TIME`, as in --from")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most `N`; 0 is all")
	cmd.Flags().BoolVar(&ids, "ids", false, "print ids alone, one in a line")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) (err error) {
		if limit < 0 {
			return cli.Exitf(cli.CodeUsage, "--limit %d: use 0 or more", limit)
		}
		now := time.Now()
		if f.From, err = earlier("--from", from, now); err != nil {
			return err
		}
		if f.To, err = earlier("--to", to, now); err != nil {
			return err
		}
		return a.ask(cmd, looks, func(ctx context.Context, from source) error {
			err := a.letters(ctx, from, f, limit, ids)
			if d, is := from.(database); err == nil && is && !ids && !a.json() {
				err = a.dropped(ctx, d.Runtime)
			}
			return err
		})
	})
	return cmd
}

// letters prints dead letters, a page at a time.
func (a *app) letters(
	ctx context.Context, from source, f quipu.DeadLetterFilter, limit int, ids bool,
) error {
	t := a.lettersTable()
	listed := 0
	for limit == 0 || listed < limit {
		if f.Limit = store.MaxPage; limit > 0 {
			f.Limit = min(limit-listed, store.MaxPage)
		}
		page, err := from.DeadLetters(ctx, f)
		if err != nil {
			return err
		}
		for i := range page {
			if err := a.letter(t, &page[i], ids); err != nil {
				return err
			}
		}
		if err := t.flush(); err != nil {
			return err
		}
		if listed += len(page); len(page) < f.Limit {
			break
		}
		f.Before = page[len(page)-1].ID
	}
	if !ids {
		a.none(listed, "dead letters")
	}
	return nil
}

// dropped says how many dead letters were dropped.
func (a *app) dropped(ctx context.Context, rt *quipu.Runtime) error {
	dropped, err := rt.Operator().DroppedLetters(ctx)
	if err == nil && dropped > 0 {
		fmt.Fprintf(a.streams.Err, "%d older dead letters were dropped: only the newest %d of messages that belong to nothing are kept\n",
			dropped, store.MaxUnclaimed)
	}
	return err
}

func (a *app) lettersTable() *table {
	return newTable(a.streams.Out, "DEAD", "JOB", "ACTIVITY", "ADDRESS", "STATE", "REASON", "AT", "MESSAGE")
}

func (a *app) letter(t *table, d *view.DeadLetter, ids bool) error {
	if ids {
		_, err := fmt.Fprintln(a.streams.Out, d.ID)
		return err
	}
	return a.item(t, d, d.ID, d.Key, d.Activity, d.Address, d.State, d.Reason, local(d.At), d.Message)
}

func (a *app) deadRetryCommand() *cobra.Command {
	var d decision
	var effect string
	cmd := &cobra.Command{
		Use:   "retry ID... | retry -",
		Short: "Attempt again",
		Long: `Release the messages of dead letters: they are tried again.

If the request is parked for a guarded effect whose outcome is unknown, retry says that
the effect was not done. The call is made again, under the next key. Look at the receiver
first.

If the request is parked because the verifier contradicts a recorded effect, retry asks
the verifier again. With --effect KEY, retry says that this effect was not done: its
recorded result is void, and the call is made again.`,
		Args: cli.Args(1, -1),
	}
	a.aboutEffect(cmd, &effect)
	d.define(a, cmd)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		key, err := effectKey(effect, args)
		if err != nil {
			return err
		}
		return a.decide(cmd, args, "retried",
			quipu.Decision{Verdict: quipu.Retry, Effect: key, Who: a.whoOf(d), Reason: d.reason})
	})
	return cmd
}

func (a *app) deadDoneCommand() *cobra.Command {
	var d decision
	var result, effect string
	cmd := &cobra.Command{
		Use:   "done ID... | done -",
		Short: "Say that a parked effect was done",
		Long: `Say that the effects of dead letters were done. Their handlers run again and go on with
the result, without the call.

--result is what the effect's function would have returned. It has to fit the type of
that function, which only the handler knows. A result is written once; with one that does
not fit, the request is parked again. To end the whole request instead, use resolve.

Use --result null to confirm an effect that is recorded as done and that its verifier
contradicts: the recorded result stays, and the verifier is not asked again. null also
marks a compensation that failed too often as done. The dead letter and
` + "`quipu show --effect`" + ` say which effect it is.`,
		Example: `  quipu dead done 7 --result '{"id": "ch_81"}' --reason "it is in the provider's books"`,
		Args:    cli.Args(1, -1),
	}
	cmd.Flags().StringVar(&result, "result", "", "`JSON` of the effect's result, required; @FILE reads a file")
	a.aboutEffect(cmd, &effect)
	d.define(a, cmd)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		say := quipu.Decision{Verdict: quipu.Done, Who: a.whoOf(d), Reason: d.reason}
		var err error
		if result != "" { // without one it is refused, as everywhere
			if say.Result, err = a.result(result, "the effect's function would have returned"); err != nil {
				return err
			}
		}
		if say.Effect, err = effectKey(effect, args); err != nil {
			return err
		}
		return a.decide(cmd, args, "done", say)
	})
	return cmd
}

// aboutEffect defines the flag that names the effect of a request.
func (a *app) aboutEffect(cmd *cobra.Command, effect *string) {
	cmd.Flags().StringVar(effect, "effect", "", "`KEY` of the effect that is meant, 64 digits; default: the only one in doubt")
}

// effectKey reads --effect, zero if it is not given. An effect belongs to one dead letter.
func effectKey(effect string, args []string) (key journal.Digest, err error) {
	if effect == "" {
		return key, nil
	}
	if key, err = journal.ParseDigest(effect); err != nil {
		return key, cli.Exitf(cli.CodeUsage, "--effect %.80q: its key has 64 hexadecimal digits, `quipu show --effect NAME JOB` shows it", effect)
	}
	if len(args) > 1 {
		return key, cli.Exitf(cli.CodeUsage, "--effect names an effect of one dead letter, these are %d", len(args))
	}
	return key, nil
}

// result reads the --result of a decision; is says what it stands for.
func (a *app) result(flag, is string) (json.RawMessage, error) {
	if flag == "-" {
		return nil, cli.Exitf(cli.CodeUsage, "--result -: standard input is for ids: use @FILE")
	}
	output, err := a.payload("--result", flag)
	if err != nil {
		return nil, err
	}
	if !json.Valid(output) {
		return nil, cli.Exitf(codeRefused, "--result is no JSON: %.80s: put what %s, for example '\"wired\"'", output, is)
	}
	return output, nil
}

func (a *app) deadResolveCommand() *cobra.Command {
	var d decision
	var result string
	cmd := &cobra.Command{
		Use:   "resolve ID... | resolve -",
		Short: "End with a result",
		Long: `End the requests of dead letters with a result, as if a worker had answered with it. The
handler does not run again. To answer for one effect of the request only, use done.`,
		Example: `  quipu dead resolve 7 --result '{"id": "ch_81"}' --reason "charged, see ticket 1312"`,
		Args:    cli.Args(1, -1),
	}
	cmd.Flags().StringVar(&result, "result", "null", "`JSON` of the result; @FILE reads a file")
	d.define(a, cmd)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		output, err := a.result(result, "the handler would have returned")
		if err != nil {
			return err
		}
		return a.decide(cmd, args, "resolved",
			quipu.Decision{Verdict: quipu.Resolve, Result: output, Who: a.whoOf(d), Reason: d.reason})
	})
	return cmd
}

func (a *app) deadFailCommand() *cobra.Command {
	var d decision
	var code int
	var message string
	cmd := &cobra.Command{
		Use:   "fail ID... | fail -",
		Short: "End with an error",
		Long: `End the requests of dead letters with an error. A transition with on: error takes it; if
there is none, the job fails.`,
		Example: `  quipu dead fail 7 --code 502 --message "the provider lost it"`,
		Args:    cli.Args(1, -1),
	}
	cmd.Flags().IntVar(&code, "code", 500, "`CODE` of the error, 400 to 599")
	cmd.Flags().StringVar(&message, "message", "failed by an operator", "`TEXT` of the error")
	d.define(a, cmd)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		if code < 400 || code > 599 {
			return cli.Exitf(cli.CodeUsage, "--code %d: use 400 to 599", code)
		}
		return a.decide(cmd, args, "failed",
			quipu.Decision{Verdict: quipu.Fail, Code: code, Message: message, Who: a.whoOf(d), Reason: d.reason})
	})
	return cmd
}

func (a *app) whoOf(d decision) string { return cmp.Or(d.who, a.who()) }

// decide acts on each dead letter; one that fails does not stop the others.
func (a *app) decide(cmd *cobra.Command, args []string, word string, d quipu.Decision) error {
	ids, err := a.numbers(args)
	if err != nil {
		return err
	}
	return a.ask(cmd, writes, func(ctx context.Context, from source) error {
		var code worst
		for _, id := range ids {
			d.DeadLetter = id
			if err := from.Decide(ctx, d); err != nil {
				fmt.Fprintf(a.streams.Err, "%s: %s\n", cmd.CommandPath(), cli.Harmless(err)) // it names the dead letter
				code.add(codeOf(err))
				continue
			}
			if err := a.say(map[string]any{"id": id, "state": word}, "dead letter %d %s\n", id, word); err != nil {
				return err
			}
		}
		return code.err()
	})
}
