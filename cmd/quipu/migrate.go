package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

func (a *app) migrateCommand() *cobra.Command {
	var roles bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema of the space to this build's version",
		Long: `Make the schema of the space, or bring it to this build's version; forward only.
Workers do it at their start unless they are told not to (--no-migrate).

It also makes the next partitions of the tables (10 million jobs each), as engines do
while they run. An engine whose login may not act as the owner of the tables says so
in its log: then run this again.

With --roles it also makes the group roles quipu_SPACE_owner, _engine, _worker,
_sealer, _retention and _verifier with the least rights that each needs: none of
them but the owner can change an entry of the journal, and only retention, which
removes jobs that have expired, can delete one. Grant them to the users that your
processes log in as; what you do not grant, a process that logs in as the owner has.
Repeat it after each migration. It needs the right CREATEROLE.`,
		Example: "  quipu migrate --roles\n  journal-verify --postgres postgres://auditor@db/quipu   # auditor is in quipu_default_verifier",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&roles, "roles", false, "make the least-privilege roles too")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		return a.with(cmd, makes, func(ctx context.Context, rt *quipu.Runtime) error {
			if roles {
				if err := rt.Roles(ctx); err != nil {
					return err
				}
			}
			_, err := fmt.Fprintf(a.streams.Out, "the schema of space %s is this build's\n", a.spaceName())
			return err
		})
	})
	return cmd
}
