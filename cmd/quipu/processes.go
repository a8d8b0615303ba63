package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

func (a *app) processesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "processes",
		Short: "List the processes that live",
		Long: `List the living processes, oldest first, at most 1000, with their roles and the topics
that they have handlers for. A process that is silent for its lease (3 s by default) is
not listed any more. Clients, processes with only the roles schedule and retention, and
workers in other languages are never listed. In a database that is another one than the
space's no process works; then the command says why (quipu recover).`,
		Example: "  quipu processes",
		Args:    cli.Args(0, 0),
	}
	cmd.RunE = a.run(looks, func(ctx context.Context, rt *quipu.Runtime, _ []string) error {
		all, err := rt.Processes(ctx)
		if err != nil {
			return err
		}
		return a.processes(all)
	})
	return cmd
}

// process is one live process, as processes prints it in JSON.
type process struct {
	Name   string       `json:"name"`
	Build  string       `json:"build,omitempty"`
	Roles  []quipu.Role `json:"roles"`
	Topics []string     `json:"topics"`
	Since  time.Time    `json:"since"`
	Seen   time.Time    `json:"seen"`
}

func (a *app) processes(all []quipu.Process) error {
	a.none(len(all), "processes: start one with `worker`, or a program that calls Run")
	t := newTable(a.streams.Out, "PROCESS", "BUILD", "ROLES", "TOPICS", "SINCE")
	for _, p := range all {
		roles := make([]string, len(p.Roles))
		for i, r := range p.Roles {
			roles[i] = string(r)
		}
		v := process{p.Name, p.Build, p.Roles, append([]string{}, p.Topics...), p.Since.UTC(), p.Seen.UTC()}
		if err := a.item(t, v, p.Name, p.Build, strings.Join(roles, " "), strings.Join(p.Topics, " "),
			p.Since.Local().Format(time.DateTime)); err != nil {
			return err
		}
	}
	return t.flush()
}
