package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// errEnded says that the job has ended, so there is nothing to interrupt.
var errEnded = errors.New("it has ended already")

func (a *app) interruptCommand() *cobra.Command {
	var code int
	var reason, id, who string
	var descend, noThrow bool
	cmd := &cobra.Command{
		Use:   "interrupt KEY... | interrupt -",
		Short: "End jobs",
		Long: `End jobs as interrupted, with a code and a reason. Their open activities are abandoned;
the compensations of their durable functions run in a job of their own. The jobs end as
soon as an engine has taken the message; ` + "`quipu wait`" + ` waits for that. Jobs that they await go
on, unless you say --descend.`,
		Example: "  quipu interrupt order-42 --reason \"cancelled by the customer\"\n  quipu ls --state open --flow order --keys --limit 0 | quipu interrupt - --descend",
		Args:    cli.Args(1, -1),
	}
	cmd.Flags().IntVar(&code, "code", 410, "`CODE` of the error that they end with, 400 to 599")
	cmd.Flags().StringVar(&reason, "reason", "interrupted", "`TEXT` of the error")
	cmd.Flags().BoolVar(&descend, "descend", false, "also the jobs that they await")
	cmd.Flags().BoolVar(&noThrow, "no-throw", false, "end them as completed, with their output")
	cmd.Flags().StringVar(&id, "id", "", "idempotency `KEY` of this interrupt; default: each call is one of its own")
	a.named(cmd, &who)
	return a.ofKeys(cmd, func(cmd *cobra.Command, keys []string) error {
		options := []quipu.InterruptOption{
			quipu.Code(code), quipu.Reason(reason), quipu.Descend(descend), quipu.Throw(!noThrow),
			quipu.Who(cmp.Or(who, a.who())),
		}
		if id != "" {
			options = append(options, quipu.IdempotencyKey(id))
		}
		return a.ask(cmd, starts, func(ctx context.Context, rt *quipu.Runtime, remote *api.Client) error {
			return a.each(cmd, keys, func(key string) error {
				if remote == nil {
					return a.interrupt(ctx, rt, key, options)
				}
				job, err := remoteJob(ctx, remote, key)
				if err != nil {
					return err
				}
				done, err := remote.Interrupt(ctx, job,
					api.InterruptRequest{Code: code, Reason: reason, Descend: descend, NoThrow: noThrow}, id)
				if err != nil {
					return err
				}
				return a.interrupted(&done)
			})
		})
	})
}

// interrupt ends the job that has the key now. It reads nothing of it: a client's login may not.
func (a *app) interrupt(ctx context.Context, rt *quipu.Runtime, key string, options []quipu.InterruptOption) error {
	done, err := rt.Interrupt(ctx, quipu.Job{Key: key}, options...)
	if err != nil {
		return err
	}
	return a.interrupted(&api.Interrupted{
		Key: key, Job: done.Job.ID.String(), Duplicate: done.Duplicate, Closed: done.Closed,
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
