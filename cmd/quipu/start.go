package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/view"
)

func (a *app) startCommand() *cobra.Command {
	var input, of, at string
	var r quipu.StartRequest
	cmd := &cobra.Command{
		Use:   "start FLOW [KEY] | start -",
		Short: "Start jobs",
		Long: `Start one job of a flow on its active version. With - start many, from JSON Lines on
standard input: each line is {"flow": …, "key": …, "input": …}, and optionally "version",
"delay", "at" and "tags".

A key has one job. To start the same flow again with the same key and input changes
nothing and is no error, so after any trouble you can start the whole file again. With
another flow or input it is refused. Leave KEY out if the flow derives it from the input
(identity: strict).

With --delay or --at the job is there at once, and starts later by the database's clock: at
once if that time has passed, and at the later one if both are given. --tag may be
repeated; quipu ls --tag finds the job by it.

A line that is refused is reported with its number, and the other lines are started.`,
		Example: `  quipu start order order-42 --input '{"total": 10}'
  quipu start order order-43 --input @order.json
  quipu start order order-44 --at 2026-12-24T18:00:00Z --tag customer:42 --input @order.json
  quipu start order order-42-again --input-of order-42
  quipu start - < orders.jsonl`,
		Args: startArgs,
	}
	cmd.Flags().StringVar(&input, "input", "{}", "`JSON` of the job's input; @FILE reads a file, - standard input")
	cmd.Flags().StringVar(&of, "input-of", "", "take the input of the job with this `KEY`")
	cmd.MarkFlagsMutuallyExclusive("input", "input-of")
	own := []string{"input", "input-of", "version", "delay", "at", "tag"}
	cmd.Flags().StringVar(&r.Version, "version", "", "`VERSION` of the flow; default: the active one")
	cmd.Flags().DurationVar(&r.Delay, "delay", 0, "start after this `TIME`")
	cmd.Flags().StringVar(&at, "at", "", "start at this `TIME`, such as 2026-12-24T18:00:00Z")
	cmd.Flags().StringArrayVar(&r.Tags, "tag", nil, "`TAG` of the job, up to 10")
	a.named(cmd, &r.Who)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		r.Who = cmp.Or(r.Who, a.who())
		if args[0] == "-" {
			if len(args) > 1 || slices.ContainsFunc(own, cmd.Flags().Changed) {
				return cli.Exitf(cli.CodeUsage, "start - takes everything from the lines of standard input, and no other argument but --who")
			}
			return a.with(cmd, starts, func(ctx context.Context, rt *quipu.Runtime) error {
				return a.startMany(ctx, rt, r.Who)
			})
		}
		if at != "" {
			var err error
			if r.At, err = time.Parse(time.RFC3339, at); err != nil {
				return cli.Exitf(cli.CodeUsage, "--at %.40q: use a time such as 2026-12-24T18:00:00Z", at)
			}
		}
		body, err := a.payload("--input", input)
		if err != nil {
			return err
		}
		if r.Flow, r.Input = args[0], json.RawMessage(body); len(args) == 2 {
			r.Key = args[1]
		}
		return a.start(cmd, r, of)
	})
	return cmd
}

// start starts one job, and prints it. Its input is that of the job of, unless that is "".
func (a *app) start(cmd *cobra.Command, r quipu.StartRequest, of string) error {
	return a.ask(cmd, starts, func(ctx context.Context, from source) error {
		if of != "" {
			other, err := from.Job(ctx, of, view.Want{Events: true})
			switch {
			case err != nil:
				return err
			case other.Input == nil || other.Input.JSON == nil:
				return fmt.Errorf("the input of job %q cannot be read", of)
			}
			r.Input = other.Input.JSON
		}
		job, err := from.Start(ctx, r)
		if err != nil {
			return different(err)
		}
		return a.startedOne(job)
	})
}

// startArgs also refuses the key -, for which other commands read keys from standard input.
func startArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 2 && args[0] != "-" && args[1] == "-" {
		return errors.New("KEY cannot be -, which stands for standard input: name such a job in a line of `quipu start -`")
	}
	return cli.Args(1, 2)(cmd, args)
}

func (a *app) startedOne(job quipu.Job) error {
	word, text := "new", "started"
	if job.Existing {
		word, text = "already", "was started already, with the same input"
	}
	return a.say(api.Started{Key: job.Key, Job: job.ID.String(), Start: word}, "%s %s (job %s)\n", plain(job.Key), text, job.ID)
}

// different adds to a conflict error how to look at the existing job.
func different(err error) error {
	if e, ok := errors.AsType[*quipu.ConflictError](err); ok {
		return fmt.Errorf("%w, or look at it with `quipu show %s`", err, e.Job.Key)
	}
	return err
}
