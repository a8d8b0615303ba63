package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

func (a *app) startCommand() *cobra.Command {
	var input string
	cmd := &cobra.Command{
		Use:   "start FLOW [KEY] | start -",
		Short: "Start jobs",
		Long: `Start one job of a flow on its active version, or with - many from JSON Lines on
standard input, each {"flow": …, "key": …, "input": …}.

A key has one job. Starting it again from the same flow with the same input changes
nothing and is no error, so that a file of jobs can simply be started again after any
trouble; with other content it is refused. KEY is left out where the flow derives it
from the input (identity: strict).

A line that is refused is reported with its number and holds up no other line.`,
		Example: `  quipu start order order-42 --input '{"total": 10}'
  quipu start order order-43 --input @order.json
  quipu start - < orders.jsonl`,
		Args: cobra.RangeArgs(1, 2),
	}
	cmd.Flags().StringVar(&input, "input", "{}", "`JSON` of the job's input; @FILE reads a file, - standard input")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		if args[0] == "-" {
			if len(args) > 1 || cmd.Flags().Changed("input") {
				return cli.Exitf(cli.CodeUsage, "start - takes flow, key and input from the lines of standard input, and no other argument")
			}
			return a.with(cmd, starts, a.startMany)
		}
		body, err := a.payload("--input", input)
		if err != nil {
			return err
		}
		key := ""
		if len(args) == 2 {
			key = args[1]
		}
		return a.with(cmd, starts, func(ctx context.Context, rt *quipu.Runtime) error {
			return a.startOne(ctx, rt, quipu.StartRequest{Flow: args[0], Key: key, Input: json.RawMessage(body)})
		})
	})
	return cmd
}

// started is what is printed of a started job.
type started struct {
	Key   string `json:"key"`
	Job   string `json:"job"`
	Start string `json:"start"` // new, or already
}

func (a *app) startOne(ctx context.Context, rt *quipu.Runtime, r quipu.StartRequest) error {
	job, err := rt.Start(ctx, r.Flow, r.Key, r.Input)
	word := "new"
	switch {
	case err != nil:
		return different(err)
	case job.Existing:
		word = "already"
	}
	if a.json() {
		return a.object(started{Key: job.Key, Job: job.ID.String(), Start: word})
	}
	text := "started"
	if word == "already" {
		text = "was started already, with the same input"
	}
	_, err = fmt.Fprintf(a.streams.Out, "%s %s (job %s)\n", plain(job.Key), text, job.ID)
	return err
}

// different adds to the error of a start of a key that is taken how to look at its job.
func different(err error) error {
	if e, ok := errors.AsType[*quipu.ConflictError](err); ok {
		return fmt.Errorf("%w, or look at it with `quipu show %s`", err, e.Job.Key)
	}
	return err
}
