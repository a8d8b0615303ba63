package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/workers"
)

func (a *app) checkCommand() *cobra.Command {
	var open bool
	var topics []string
	cmd := &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Say whether flow files, and open jobs, fit a build",
		Long: `Look for faults in flow files (YAML or JSON; - is standard input), as deploy does, and
deploy nothing.

With --against-open, also compare every open job of the space with this build of quipu and
with the files, and say with exit code 3 that something does not fit:

- an open job runs on a version of a flow that this build cannot read
- a file has other content than the version of that name that is deployed
- a child that has not begun has an input that the new version of its flow refuses
- with --topics: an open job can still come to a topic that is not in the list

Functions of Go are compared by the program that has them: Runtime.CheckOpen.`,
		Example: "  quipu check flows/*.yaml\n  quipu check --against-open --topics http,payments.charge,stock.reserve flows/*.yaml",
		Args:    cobra.ArbitraryArgs,
	}
	cmd.Flags().BoolVar(&open, "against-open", false, "compare with the open jobs of the space, too")
	cmd.Flags().StringSliceVar(&topics, "topics", nil, "`LIST` of all topics that will be served; default: topics are not compared")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		if !open && (len(args) == 0 || len(topics) > 0) {
			return cli.Exitf(cli.CodeUsage, "give files, or --against-open; --topics goes with --against-open")
		}
		flows, err := a.parse(cmd, args)
		if err != nil || !open {
			return err
		}
		c := quipu.OpenCheck{Flows: flows}
		if cmd.Flags().Changed("topics") {
			c.Workers, c.Elsewhere = workers.New(), topics
		}
		return a.with(cmd, looks, func(ctx context.Context, rt *quipu.Runtime) error { return a.checkOpen(ctx, rt, c) })
	})
	return cmd
}

// misfit is what does not fit, as check prints it in JSON.
type misfit struct {
	Key      string `json:"key,omitempty"`
	Job      string `json:"job,omitempty"`
	Flow     string `json:"flow"`
	Version  string `json:"version"`
	Activity string `json:"activity,omitempty"`
	DAD      string `json:"dad,omitempty"`
	Topic    string `json:"topic,omitempty"`
	Error    string `json:"error"`
}

// checkOpen compares the open jobs with the build, and counts them on a terminal.
func (a *app) checkOpen(ctx context.Context, rt *quipu.Runtime, c quipu.OpenCheck) error {
	var jobs int64
	clear := func() {}
	if cli.Terminal(a.streams.Err) {
		clear = func() { fmt.Fprint(a.streams.Err, "\r\x1b[K") }
	}
	c.Progress = func(n, _ int64) {
		if jobs = n; n%1000 == 0 && cli.Terminal(a.streams.Err) {
			clear()
			fmt.Fprint(a.streams.Err, counted(n, "job"))
		}
	}
	var found int64
	for m, err := range rt.CheckOpen(ctx, c) {
		clear()
		if err != nil {
			return err
		}
		found++
		if err := a.misfit(m); err != nil {
			return err
		}
	}
	clear()
	if found > 0 {
		fmt.Fprintf(a.streams.Err, "quipu check: %s, %s\n", counted(jobs, "open job"), counted(found, "misfit"))
		return cli.Exit(codeRefused, cli.ErrReported)
	}
	if a.json() {
		return nil
	}
	_, err := fmt.Fprintf(a.streams.Out, "%s: all fit\n", counted(jobs, "open job"))
	return err
}

func (a *app) misfit(m quipu.Misfit) error {
	o := misfit{
		Key: m.Job.Key, Flow: m.Flow, Version: m.Version, Activity: m.Activity, DAD: m.Address, Topic: m.Topic,
		Error: m.Err.Error(),
	}
	if !m.Job.ID.IsZero() {
		o.Job = m.Job.ID.String()
	}
	return a.say(o, "%s\n", plain(m.String()))
}
