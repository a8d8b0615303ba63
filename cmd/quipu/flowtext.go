package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
)

func (a *app) flowsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show FLOW VERSION",
		Short: "Print a deployed version",
		Long: `Print the definition of a deployed version, as JSON that deploy reads. It is the
canonical form: keys are sorted, defaults are spelled out, and comments are gone.`,
		Example: "  quipu flows show order 2 > order.json",
		Args:    cli.Args(2, 2),
		RunE: cli.Run(func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd, looks, func(ctx context.Context, from source) error {
				text, err := flowText(ctx, from, args[0], args[1])
				if err != nil {
					return err
				}
				if a.json() {
					return a.object(json.RawMessage(text))
				}
				var out bytes.Buffer
				if err := json.Indent(&out, []byte(inert(text)), "", "  "); err != nil {
					return err
				}
				_, err = fmt.Fprintln(a.streams.Out, out.String())
				return err
			})
		}),
	}
}

func (a *app) flowsDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff FLOW VERSION VERSION",
		Short: "Compare two deployed versions",
		Long: `Compare two deployed versions of a flow, one difference per line: + is only in the
second, - is only in the first, ~ is in both with other values.`,
		Example: "  quipu flows diff order 1 2",
		Args:    cli.Args(3, 3),
		RunE: cli.Run(func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd, looks, func(ctx context.Context, from source) error {
				var sides [2][]byte
				for i := range sides {
					text, err := flowText(ctx, from, args[0], args[1+i])
					if err != nil {
						return err
					}
					sides[i] = text
				}
				found, err := inspect.Differences(sides[0], sides[1])
				if err != nil {
					return err
				}
				return a.differences(found)
			})
		}),
	}
}

func flowText(ctx context.Context, from source, name, version string) ([]byte, error) {
	text, err := from.Definition(ctx, name, version)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("flow %q version %q: %w: `quipu flows` lists what is deployed", name, version, err)
	}
	return text, err
}

func (a *app) differences(found []inspect.Difference) error {
	for _, d := range found {
		line := ""
		switch {
		case d.Before == nil:
			line = fmt.Sprintf("+ %s: %s", d.Path, inspect.Spell(d.After))
		case d.After == nil:
			line = fmt.Sprintf("- %s: %s", d.Path, inspect.Spell(d.Before))
		default:
			line = fmt.Sprintf("~ %s: %s → %s", d.Path, inspect.Spell(d.Before), inspect.Spell(d.After))
		}
		if err := a.say(d, "%s\n", plain(line)); err != nil {
			return err
		}
	}
	return nil
}
