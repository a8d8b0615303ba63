package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/health"
)

func (a *app) processesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "processes",
		Short: "List the processes that live",
		Long: `List the living processes, oldest first, at most 1000, with their roles and the topics
that they have handlers for. A process that is silent for its lease (3 s by default) is
not listed any more. Clients, processes with only the roles schedule and retention, and
workers in other languages are never listed. In a database that is another one than the
space's no process works; then the command says why (quipu recover).

What is wrong with the space comes after them, on standard error, the worst first, with how long
it has been so and who tells it: what stops a process (it says the same at /readyz), and what
quipu top has below STUCK. Queues are not read: top sees topics that nobody serves.`,
		Example: "  quipu processes",
		Args:    cli.Args(0, 0),
	}
	cmd.RunE = a.run(looks, func(ctx context.Context, rt *quipu.Runtime, _ []string) error {
		all, err := rt.Processes(ctx)
		if err != nil {
			return err
		}
		if err := a.processes(all); err != nil || a.json() {
			return err
		}
		return a.wrong(ctx, rt)
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

// wrong says what is wrong with the space.
func (a *app) wrong(ctx context.Context, rt *quipu.Runtime) error {
	gauges, err := below.Of(rt).Gauges(ctx)
	if err != nil {
		return err
	}
	all, err := below.Reader(rt).Wrong(ctx, &health.Sight{Gauges: gauges})
	if err != nil {
		return err
	}
	for i := range all {
		f := &all[i]
		text := f.Text
		if f.For > 0 {
			text += ", for " + seconds(f.For.Seconds())
		}
		if len(f.Processes) > 0 {
			text += " (" + strings.Join(f.Processes, ", ") + ")"
		}
		if f.Command != processesAgain {
			text += ": " + f.Command
		}
		fmt.Fprintln(a.streams.Err, "wrong: "+plain(text))
	}
	return nil
}

// processesAgain is this command: what leads to it says no more.
const processesAgain = "quipu processes"
