package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list or revoke tokens of the HTTP API",
		Long: `Make, list or revoke the tokens with which programs and people use the HTTP API and the
console. Only a hash of a token is stored. Each role may also do what the ones before it
may: a viewer sees jobs without their payloads; a client starts, signals and interrupts
jobs; an operator decides on dead letters, resumes and forks jobs, deploys and activates
flows, and acts on many jobs in the console. The name of a token goes to the journal.

create and revoke need the login of the owner.`,
	}
	cmd.AddCommand(a.tokenCreateCommand(), a.tokenLsCommand(), a.tokenRevokeCommand())
	return cmd
}

func (a *app) tokenCreateCommand() *cobra.Command {
	var role string
	var holds time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token",
		Long: `Make a token and print it. Nobody can read it again: give it to who will use it, over a
way that nobody else reads. NAME says who that is.`,
		Example: "  quipu token create shop --role client\n  quipu token create ada --role operator --for 720h",
		Args:    cli.Args(1, 1),
	}
	cmd.Flags().StringVar(&role, "role", string(access.Viewer), "`ROLE`: viewer, client or operator")
	cmd.Flags().DurationVar(&holds, "for", 0, "it holds for this `TIME`; default: until it is revoked")
	cmd.RunE = a.run(writes, func(ctx context.Context, rt *quipu.Runtime, args []string) error {
		token, err := rt.Tokens().Create(ctx, args[0], access.Role(role), holds)
		if err != nil {
			return err
		}
		return a.say(map[string]any{"name": args[0], "role": role, "token": token}, "%s\n", token)
	})
	return cmd
}

// tokenView is a token as the command prints it in JSON.
type tokenView struct {
	Name string      `json:"name"`
	Role access.Role `json:"role"`
	Made time.Time   `json:"made"`
	Ends time.Time   `json:"ends,omitzero"`
}

func (a *app) tokenLsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Short: "List tokens", Long: "List tokens, also those that have ended.", Args: cli.Args(0, 0)}
	cmd.RunE = a.run(reads, func(ctx context.Context, rt *quipu.Runtime, _ []string) error {
		all, err := rt.Tokens().List(ctx)
		if err != nil {
			return err
		}
		t := newTable(a.streams.Out, "NAME", "ROLE", "MADE", "HOLDS UNTIL")
		for _, x := range all {
			v := tokenView{Name: x.Name, Role: x.Role, Made: x.Made.UTC(), Ends: x.Ends.UTC()}
			if err := a.item(t, v, x.Name, x.Role, local(v.Made), cmp.Or(local(v.Ends), "it is revoked")); err != nil {
				return err
			}
		}
		a.none(len(all), "tokens")
		return t.flush()
	})
	return cmd
}

func (a *app) tokenRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke NAME...", Short: "Revoke tokens", Long: "Revoke tokens: from now on they do not hold.",
		Example: "  quipu token revoke shop", Args: cli.Args(1, -1),
	}
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		return a.with(cmd, writes, func(ctx context.Context, rt *quipu.Runtime) error {
			return a.each(cmd, args, func(name string) error {
				if err := rt.Tokens().Revoke(ctx, name); err != nil {
					return err
				}
				return a.say(map[string]any{"name": name, "revoked": true}, "token %s is revoked\n", plain(name))
			})
		})
	})
	return cmd
}
