package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

func (a *app) callCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "call TOPIC KEY [INPUT | @FILE | -]",
		Short: "Call a handler and wait for its result",
		Long: `Call one handler without a flow of your own, and print its result. The call is a job of
the built-in flow quipu_call, whose version is the topic. The input is JSON, {} by
default: write it as the argument, @FILE, or - for standard input.

KEY is the key of the job. A call that is repeated with the same KEY does not call the
handler again: it waits for the job, or prints its result. With another topic or input it
is refused. The job is kept as long as the space says (quipu migrate --expire). When it
has expired, a call with its KEY is a new one.`,
		Example: `  quipu call payments.charge invoice-42 '{"amount": 10}'
  quipu call trip.book trip-7 @trip.json --timeout 1m`,
		Args: cli.Args(2, 3),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "end after this `TIME` with code 6, the job goes on; default: never")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		if timeout < 0 {
			return cli.Exitf(cli.CodeUsage, "--timeout %s: use a positive time such as 30s", timeout)
		}
		input := []byte("{}")
		if len(args) == 3 {
			var err error
			if input, err = a.payload("INPUT", args[2]); err != nil {
				return err
			}
		}
		return a.with(cmd, starts, func(ctx context.Context, rt *quipu.Runtime) error {
			ctx, cancel := within(ctx, timeout)
			defer cancel()
			return a.call(ctx, rt, args[0], args[1], input)
		})
	})
	return cmd
}

func (a *app) call(ctx context.Context, rt *quipu.Runtime, topic, key string, input []byte) error {
	output, err := a.patiently(ctx, "quipu call", func(parked bool) (json.RawMessage, error) {
		return rt.Call(ctx, topic, key, json.RawMessage(input), quipu.UntilParked(parked))
	})
	ended, failed := errors.AsType[*quipu.JobError](err)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errTimeout):
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateLook)
		defer cancel()
		because, failed := lateBecause(ctx, database{rt}, key)
		if failed != nil {
			return fmt.Errorf("it is not known whether the call has ended: %w", failed)
		}
		return cli.Exitf(codeTimeout, "the call has not ended in time: %s; `quipu wait %s` waits on", because, key)
	case a.json() && err == nil:
		return a.object(ending{Key: key, State: journal.JobCompleted, Output: output})
	case a.json() && failed:
		end := ending{
			Key: key, Job: ended.Job.ID, State: ended.State, Code: ended.Code, Error: view.FailureOf(ended.Cause),
		}
		if err := a.object(end); err != nil {
			return err
		}
		return cli.Exit(codeEnded, cli.ErrReported)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(a.streams.Out, "%s\n", inert(output))
	return err
}
