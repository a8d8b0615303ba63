package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
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
		return a.with(cmd, writes, func(ctx context.Context, rt *quipu.Runtime) error {
			return a.deploy(ctx, rt, flows, inactive)
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

type deployed struct {
	Flow    string `json:"flow"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
	New     bool   `json:"new"`
	Active  bool   `json:"active"`
}

func (a *app) deploy(ctx context.Context, rt *quipu.Runtime, flows []*flow.Flow, inactive bool) error {
	before, err := versions(ctx, rt)
	if err != nil {
		return err
	}
	for _, f := range flows {
		if _, err := rt.Operator().Deploy(ctx, f, !inactive, ""); err != nil {
			return err
		}
	}
	after, err := versions(ctx, rt)
	if err != nil {
		return err
	}
	for _, f := range flows {
		_, known := before[flowVersion{f.Name(), f.Version()}]
		if err := a.deployed(f, !known, after); err != nil {
			return err
		}
	}
	return nil
}

type flowVersion struct{ name, version string }

// versions returns the deployed versions, and whether each is active.
func versions(ctx context.Context, rt *quipu.Runtime) (map[flowVersion]bool, error) {
	flows, err := below.Of(rt).Flows(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[flowVersion]bool, len(flows))
	for _, f := range flows {
		all[flowVersion{f.Ref.Name, f.Ref.Version}] = f.Active
	}
	return all, nil
}

func (a *app) deployed(f *flow.Flow, fresh bool, after map[flowVersion]bool) error {
	d := deployed{
		Flow: f.Name(), Version: f.Version(), Digest: journal.Digest(f.Digest()).String(), New: fresh,
		Active: after[flowVersion{f.Name(), f.Version()}],
	}
	word, state := "deployed", "active"
	if !d.New {
		word = "was deployed"
	}
	if !d.Active {
		active := ""
		for v, is := range after {
			if is && v.name == d.Flow {
				active = v.version
			}
		}
		state = fmt.Sprintf("new jobs take version %s; `quipu activate %s %s` changes that", active, d.Flow, d.Version)
	}
	return a.say(d, "flow %s version %s %s, %s\n", d.Flow, d.Version, word, state)
}

func (a *app) activateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "activate FLOW VERSION",
		Short: "Set the version of a flow that new jobs take",
		Long:  `Set the version of a flow that new jobs take. Running jobs keep theirs.`,
		Args:  cli.Args(2, 2),
		RunE: a.run(writes, func(ctx context.Context, rt *quipu.Runtime, args []string) error {
			if err := rt.Operator().Activate(ctx, args[0], args[1], ""); err != nil {
				return fmt.Errorf("flow %q version %q: %w: `quipu flows` lists what is deployed", args[0], args[1], err)
			}
			return a.say(map[string]string{"flow": args[0], "active": args[1]}, "new jobs of flow %s take version %s\n", args[0], args[1])
		}),
	}
}

func (a *app) flowsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flows",
		Short: "List the deployed flows",
		Long:  `List the deployed versions of all flows; the active one is what new jobs take.`,
		Args:  cli.Args(0, 0),
		RunE: a.run(reads, func(ctx context.Context, rt *quipu.Runtime, _ []string) error {
			flows, err := below.Of(rt).Flows(ctx)
			if err != nil {
				return err
			}
			t := newTable(a.streams.Out, "FLOW", "VERSION", "ACTIVE", "DEPLOYED", "DIGEST")
			for _, f := range flows {
				deployed := time.UnixMicro(int64(f.Deployed)).UTC()
				v := map[string]any{
					"flow": f.Ref.Name, "version": f.Ref.Version, "digest": f.Ref.Digest.String(), "active": f.Active, "deployed": deployed,
				}
				active := ""
				if f.Active {
					active = "active"
				}
				if err := a.item(t, v, f.Ref.Name, f.Ref.Version, active, local(deployed),
					f.Ref.Digest.String()[:16]); err != nil {
					return err
				}
			}
			return t.flush()
		}),
	}
	cmd.AddCommand(a.flowsShowCommand(), a.flowsDiffCommand())
	return cmd
}
