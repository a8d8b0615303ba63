package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/store"
)

func (a *app) migrateCommand() *cobra.Command {
	var roles, private bool
	var expire string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema of the space to this build's version",
		Long: `Make the schema of the space, or bring it to this build's version; forward only.
Workers do it when they start, unless they have --no-migrate.

It also makes the next partitions of the tables (10 million jobs each), as engines do
while they run. An engine whose login may not act as the owner of the tables says so
in its log: then run this again.

--expire sets how long closed jobs are kept if their flow does not say it. A new space
has 720h. A process reads it when it starts.

--private-keys lets a new space keep digests of the keys of jobs and signals instead of
the keys, for good. A space that has jobs is refused. Processes that run already begin no
job any more: restart them.

--roles also makes the group roles quipu_SPACE_owner, _engine, _operator, _worker,
_client, _retention and _verifier, with the least rights that each needs. Only the owner
can change or delete an entry of the journal. The login of a worker sees the requests of
its topics only: quipu grant worker. Retention turns expired jobs into tombstones; to drop
their journals, as whole partitions, it must also be able to act as the owner of the tables.
quipu grant gives the roles to the logins of your processes. A process that logs in as the owner has all
rights. Repeat --roles after each migration. It needs the right CREATEROLE.`,
		Example: "  quipu migrate --roles\n  quipu migrate --expire 2160h\n  journal-verify --postgres postgres://auditor@db/quipu   # auditor is in quipu_default_verifier",
		Args:    cli.Args(0, 0),
	}
	cmd.Flags().StringVar(&expire, "expire", "", "`TIME` that closed jobs are kept whose flow does not say it, 1s to 87600h, or never; default: what the space has")
	cmd.Flags().BoolVar(&private, "private-keys", false, "keep digests of keys, in a new space")
	cmd.Flags().BoolVar(&roles, "roles", false, "make the least-privilege roles too")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		keep, err := expireFlag(expire)
		if err != nil {
			return err
		}
		return a.with(cmd, makes, func(ctx context.Context, rt *quipu.Runtime) error {
			if private {
				if err := rt.KeepPrivateKeys(ctx); err != nil {
					return err
				}
			}
			if roles {
				if err := rt.CreateRoles(ctx); err != nil {
					return err
				}
			}
			if expire != "" {
				if err := rt.SetExpireDefault(ctx, keep); err != nil {
					return err
				}
			}
			kept, err := rt.ExpireDefault(ctx)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.streams.Out, "the schema of space %s is this build's; a closed job whose flow does not say it is kept %s\n",
				a.spaceName(), keptText(kept))
			return err
		})
	})
	return cmd
}

// never is the --expire of jobs that are kept for good.
const never = "never"

// expireFlag reads --expire: 0 for never.
func expireFlag(text string) (time.Duration, error) {
	if text == "" || text == never {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err == nil {
		err = store.CheckExpire(d)
	}
	if err == nil && d == 0 {
		err = errors.New("0 is no time to keep a job")
	}
	if err != nil {
		return 0, cli.Exitf(cli.CodeUsage, "--expire %.40q: a time from 1s to 87600h, or never: %v", text, err)
	}
	return d, nil
}

func keptText(d time.Duration) string {
	if d == 0 {
		return "for good"
	}
	text := d.String() // for example 720h0m0s
	if short, whole := strings.CutSuffix(text, "m0s"); whole {
		text = short + "m"
	}
	if short, whole := strings.CutSuffix(text, "h0m"); whole {
		text = short + "h"
	}
	return text
}
