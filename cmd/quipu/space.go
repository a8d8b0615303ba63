package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
)

func (a *app) spaceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "space",
		Short: "Look at the space itself",
		Long:  `Look at the space itself.`,
		Args:  cli.Args(0, 0),
	}
	cmd.AddCommand(a.spaceLogCommand())
	return cmd
}

func (a *app) spaceLogCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "log",
		Short: "Show what was decided about the space itself",
		Long: `Show the space's own chain of entries, oldest first: what operators decided about the
space itself, who it was, by which login of the database, and when. journal-verify checks
the chain. The entries, and the commands that write them:

accepted: a check of the preflight was accepted although it failed, with what it saw
(--accept). granted, revoked: a login got or lost a role or topics (quipu grant, revoke).
token-made, token-revoked (quipu token). key-added, signing (quipu keys). recovered,
on-promotion (quipu recover). expire, private-keys (quipu migrate). deployed, activated
(quipu deploy and activate, the API, and processes that deploy flows of their own).`,
		Example: "  quipu space log",
		Args:    cli.Args(0, 0),
		RunE: a.run(reads, func(ctx context.Context, rt *quipu.Runtime, _ []string) error {
			all, err := below.Of(rt).SpaceEntries(ctx)
			if err != nil {
				return err
			}
			return a.spaceLog(all)
		}),
	}
}

func (a *app) spaceLog(all []*journal.SpaceEntry) error {
	a.none(len(all), "entries about the space itself")
	t := newTable(a.streams.Out, "SEQ", "AT", "ENTRY", "WHO", "LOGIN", "BUILD", "FACTS")
	for _, e := range all {
		when := time.UnixMicro(e.At)
		var facts []string
		for _, name := range slices.Sorted(maps.Keys(e.Facts)) {
			value := plain(e.Facts[name])
			if name == "digest" { // its beginning, as `quipu flows` has it
				value = fmt.Sprintf("%.16s", value)
			}
			facts = append(facts, name+"="+value)
		}
		v := map[string]any{
			"seq": e.Seq, "at": when.UTC(), "entry": e.Kind, "who": e.Who, "login": e.Login, "build": e.Build, "facts": e.Facts,
		}
		if err := a.item(t, v, e.Seq, when.Local().Format(time.DateTime), e.Kind, e.Who, e.Login, e.Build,
			strings.Join(facts, " ")); err != nil {
			return err
		}
	}
	return t.flush()
}
