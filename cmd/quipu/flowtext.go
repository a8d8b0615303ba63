package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal/store"
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
			return a.with(cmd, looks, func(ctx context.Context, rt *quipu.Runtime) error {
				text, err := flowText(ctx, rt, args[0], args[1])
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
			return a.with(cmd, looks, func(ctx context.Context, rt *quipu.Runtime) error {
				var sides [2]any
				for i := range sides {
					text, err := flowText(ctx, rt, args[0], args[1+i])
					if err != nil {
						return err
					}
					d := json.NewDecoder(bytes.NewReader(text))
					d.UseNumber()
					if err := d.Decode(&sides[i]); err != nil {
						return err
					}
				}
				return a.differences(differences("", sides[0], sides[1], nil))
			})
		}),
	}
}

func flowText(ctx context.Context, rt *quipu.Runtime, name, version string) ([]byte, error) {
	text, err := below.Of(rt).Flow(ctx, name, version)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("flow %q version %q: %w: `quipu flows` lists what is deployed", name, version, err)
	}
	return text, err
}

// difference is one place where two versions differ; nil stands for a side that has nothing
// there.
type difference struct {
	Path   string `json:"path"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// differences compares two JSON values: objects member by member, all others as a whole.
func differences(path string, before, after any, found []difference) []difference {
	x, isObject := before.(map[string]any)
	y, areObjects := after.(map[string]any)
	if !isObject || !areObjects {
		if string(spell(before)) != string(spell(after)) {
			found = append(found, difference{path, before, after})
		}
		return found
	}
	all := maps.Clone(x)
	maps.Copy(all, y)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		inner := key
		if path != "" {
			inner = path + "." + key
		}
		_, had := x[key]
		_, has := y[key]
		switch {
		case !had:
			found = append(found, difference{Path: inner, After: y[key]})
		case !has:
			found = append(found, difference{Path: inner, Before: x[key]})
		default:
			found = differences(inner, x[key], y[key], found)
		}
	}
	return found
}

func spell(v any) []byte {
	text, _ := json.Marshal(v) // it was read from JSON, so it cannot fail
	return text
}

func (a *app) differences(found []difference) error {
	for _, d := range found {
		if a.json() {
			if err := a.object(d); err != nil {
				return err
			}
			continue
		}
		line := ""
		switch {
		case d.Before == nil:
			line = fmt.Sprintf("+ %s: %s", d.Path, spell(d.After))
		case d.After == nil:
			line = fmt.Sprintf("- %s: %s", d.Path, spell(d.Before))
		default:
			line = fmt.Sprintf("~ %s: %s → %s", d.Path, spell(d.Before), spell(d.After))
		}
		if _, err := fmt.Fprintln(a.streams.Out, plain(line)); err != nil {
			return err
		}
	}
	return nil
}
