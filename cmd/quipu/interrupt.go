package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// errEnded says that the job has ended, so there is nothing to interrupt.
var errEnded = errors.New("it has ended already")

// interruptFlags are the options of quipu interrupt.
type interruptFlags struct {
	code             int
	reason, id, who  string
	descend, noThrow bool
}

func (a *app) interruptCommand() *cobra.Command {
	var f interruptFlags
	cmd := &cobra.Command{
		Use:   "interrupt KEY... | interrupt -",
		Short: "End jobs",
		Long: `End jobs as interrupted, with a code and a reason. Their open activities are abandoned;
the compensations of their durable functions run in a job of their own. The jobs end as
soon as an engine has taken the message; ` + "`quipu wait`" + ` waits for that. Jobs that they await go
on, unless you say --descend. Many jobs are interrupted 64 at a time.`,
		Example: "  quipu interrupt order-42 --reason \"cancelled by the customer\"\n  quipu ls --state open --flow order --keys --limit 0 | quipu interrupt - --descend",
		Args:    cli.Args(1, -1),
	}
	cmd.Flags().IntVar(&f.code, "code", 410, "`CODE` of the error that they end with, 400 to 599")
	cmd.Flags().StringVar(&f.reason, "reason", "interrupted", "`TEXT` of the error")
	cmd.Flags().BoolVar(&f.descend, "descend", false, "also the jobs that they await")
	cmd.Flags().BoolVar(&f.noThrow, "no-throw", false, "end them as completed, with their output")
	cmd.Flags().StringVar(&f.id, "id", "", "idempotency `KEY` of this interrupt; default: each call is one of its own")
	a.named(cmd, &f.who)
	return a.ofKeys(cmd, func(cmd *cobra.Command, keys []string) error {
		f.who = cmp.Or(f.who, a.who())
		return a.ask(cmd, starts, func(ctx context.Context, from source) error {
			return many(a, cmd, keys, func(key string) (api.Interrupted, error) {
				return from.Interrupt(ctx, key, &f)
			}, func(_ string, done *api.Interrupted) error { return a.interrupted(done) })
		})
	})
}

// interrupted prints what became of an interrupt.
func (a *app) interrupted(done *api.Interrupted) error {
	if done.Closed && !done.Duplicate {
		return cli.Exit(codeStale, fmt.Errorf("job %q (%s): %w", done.Key, done.Job, errEnded))
	}
	text := "will be interrupted as soon as an engine takes the message"
	if done.Duplicate {
		text = "was interrupted before with this --id"
	}
	return a.say(map[string]any{"key": done.Key, "job": done.Job, "duplicate": done.Duplicate}, "%s (%s) %s\n", plain(done.Key), done.Job, text)
}
