package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/view"
)

func (a *app) deployCommand() *cobra.Command {
	var inactive bool
	cmd := &cobra.Command{
		Use:   "deploy FILE...",
		Short: "Deploy flows",
		Long: `Deploy the flows of files (YAML or JSON; - is standard input). The space must be there:
quipu migrate makes one. If a file has faults, all faults of all files are printed with
their places, and nothing is deployed. A version that is there with the same content
stays as it is. With other content it is refused: give the flow a new version.

New jobs take a version that is new; running jobs keep theirs. With --inactive a new
version waits for quipu activate, unless it is the first of its flow. What is likely to
be a mistake is a warning, and is deployed.`,
		Example: "  quipu deploy flows/*.yaml",
		Args:    cli.Args(1, -1),
	}
	cmd.Flags().BoolVar(&inactive, "inactive", false, "let new jobs go on with the versions that they take now")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		flows, err := a.parse(cmd, args)
		if err != nil {
			return err
		}
		return a.ask(cmd, writes, func(ctx context.Context, to source) error {
			return a.deploy(ctx, to, flows, !inactive)
		})
	})
	return cmd
}

// parse reads all files and prints the faults of all.
func (a *app) parse(cmd *cobra.Command, paths []string) ([]*flow.Flow, error) {
	var flows []*flow.Flow
	faulty := 0
	for _, path := range paths {
		text, err := a.read(path, flow.MaxDefinitionBytes)
		if err != nil {
			return nil, err
		}
		f, err := flow.Parse(path, text)
		if err != nil {
			fmt.Fprintln(a.streams.Err, cli.Harmless(err))
			faulty++
			continue
		}
		for _, w := range f.Warnings() {
			fmt.Fprintf(a.streams.Err, "warning: %v\n", w)
		}
		flows = append(flows, f)
	}
	if faulty > 0 {
		fmt.Fprintf(a.streams.Err, "%s: %d of %d files have faults; nothing was deployed\n", cmd.CommandPath(), faulty, len(paths))
		return nil, cli.Exit(codeRefused, cli.ErrReported)
	}
	return flows, nil
}

// deploy deploys all flows, and then says of each what became of it.
func (a *app) deploy(ctx context.Context, to source, flows []*flow.Flow, activate bool) error {
	all := make([]*view.Deployed, len(flows))
	for i, f := range flows {
		done, err := to.Deploy(ctx, f, activate)
		if err != nil {
			return err
		}
		all[i] = done
	}
	there, err := to.Flows(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		active := ""
		for _, v := range there {
			if v.Active && v.Flow == d.Flow {
				active = v.Version
			}
		}
		d.Active = active == d.Version // another one of these files may have taken it
		word, state := "deployed", "active"
		if !d.Fresh {
			word = "was deployed"
		}
		if !d.Active {
			state = fmt.Sprintf("new jobs take version %s; `quipu activate %s %s` changes that", active, d.Flow, d.Version)
		}
		if err := a.say(d, "flow %s version %s %s, %s\n", d.Flow, d.Version, word, state); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) activateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "activate FLOW VERSION",
		Short: "Set the version of a flow that new jobs take",
		Long:  `Set the version of a flow that new jobs take. Running jobs keep theirs.`,
		Args:  cli.Args(2, 2),
		RunE: cli.Run(func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd, writes, func(ctx context.Context, to source) error {
				if err := to.Activate(ctx, args[0], args[1]); err != nil {
					return fmt.Errorf("flow %q version %q: %w: `quipu flows` lists what is deployed", args[0], args[1], err)
				}
				return a.say(map[string]string{"flow": args[0], "active": args[1]}, "new jobs of flow %s take version %s\n", args[0], args[1])
			})
		}),
	}
}

func (a *app) flowsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flows",
		Short: "List the deployed flows",
		Long:  `List the deployed versions of all flows; the active one is what new jobs take.`,
		Args:  cli.Args(0, 0),
		RunE: cli.Run(func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, reads, func(ctx context.Context, from source) error {
				all, err := from.Flows(ctx)
				if err != nil {
					return err
				}
				t := newTable(a.streams.Out, "FLOW", "VERSION", "ACTIVE", "DEPLOYED", "DIGEST")
				for _, f := range all {
					active := ""
					if f.Active {
						active = "active"
					}
					err := a.item(t, f, f.Flow, f.Version, active, local(f.Deployed), f.Digest.String()[:16])
					if err != nil {
						return err
					}
				}
				return t.flush()
			})
		}),
	}
	cmd.AddCommand(a.flowsShowCommand(), a.flowsDiffCommand())
	return cmd
}
