package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

func (a *app) resumeCommand() *cobra.Command {
	var activity string
	var by decision
	cmd := &cobra.Command{
		Use:   "resume KEY... | resume -",
		Short: "Go on with jobs that failed or were interrupted",
		Long: `Go on with jobs that failed or were interrupted. Each gets a new job under its key, the
next generation. The new job takes over every result before the activity that failed,
and goes on from there. Effects that are recorded as done are not done again, also those
of the failed activity. Effects that ended with an error are tried again.

With --from, the named activity and everything that follows from it runs again instead.

The failed job stays as it is, under its id. ` + "`quipu log`" + ` and ` + "`quipu show`" + ` of the key
show the new job, which names the old one. Many jobs are resumed 64 at a time.`,
		Example: "  quipu resume order-42 --reason \"the card is valid again\"\n  quipu resume order-42 --from charge\n  quipu ls --state failed --flow order --keys --limit 0 | quipu resume -",
		Args:    cli.Args(1, -1),
	}
	cmd.Flags().StringVar(&activity, "from", "", "`ACTIVITY` that is done again, with all that follows; default: the one that failed")
	by.define(a, cmd)
	return a.ofKeys(cmd, func(cmd *cobra.Command, keys []string) error {
		by.who = a.whoOf(by)
		return a.ask(cmd, starts, func(ctx context.Context, from source) error {
			return many(a, cmd, keys, func(key string) (api.Resumed, error) {
				done, err := from.Resume(ctx, key, activity, by)
				if errors.Is(err, quipu.ErrResume) || errors.Is(err, quipu.ErrStale) {
					err = cli.Exit(codeStale, err)
				}
				return done, err
			}, func(key string, done *api.Resumed) error {
				return a.say(done, "%s goes on as generation %d, job %s\n", plain(key), done.Generation, done.Job)
			})
		})
	})
}
