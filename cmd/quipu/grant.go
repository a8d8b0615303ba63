package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/transport"
)

// roleWorker is the role whose logins are bound to topics.
const roleWorker = "worker"

// groupRoles are the roles of a space (S8).
var groupRoles = []string{"owner", "engine", "operator", roleWorker, "client", "retention", "verifier"}

func (a *app) grantCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "grant ROLE LOGIN [TOPIC...]",
		Short: "Give a login of the database a role of the space",
		Long: `Give a login of the database a role of the space: owner, engine, operator, worker, client,
retention or verifier (docs/security.md says what each can do). The login of a worker is
bound to topics, beside those that it has: it reads the requests and effects of these and no
others, writes their effects, and changes nothing else.

The login and the roles must be there: CREATE ROLE, quipu migrate --roles. It needs the
rights of the owner of the space. The space's own chain says who did it (quipu space log).`,
		Example: "  quipu grant worker payments pay.charge pay.refund\n  quipu grant engine engine_1",
		Args:    cli.Args(2, -1),
		RunE:    a.bind(true),
	}
}

func (a *app) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ROLE LOGIN [TOPIC...]",
		Short: "Take a role of the space from a login of the database",
		Long: `Take a role of the space from a login of the database, or topics from that of a worker;
without topics it loses all of them, and is no worker of the space any more. What it has
begun is done again elsewhere.

It needs the rights of the owner of the space. The space's own chain says who did it (quipu
space log).`,
		Example: "  quipu revoke worker payments pay.refund\n  quipu revoke engine engine_1",
		Args:    cli.Args(2, -1),
		RunE:    a.bind(false),
	}
}

// bind changes the role of a login, or the topics of a worker's, and says what it has then.
func (a *app) bind(grant bool) func(*cobra.Command, []string) error {
	return cli.Run(func(cmd *cobra.Command, args []string) error {
		role, login, topics := args[0], args[1], args[2:]
		if err := checkBinding(grant, role, topics); err != nil {
			return cli.Exit(cli.CodeUsage, err)
		}
		return a.with(cmd, writes, func(ctx context.Context, rt *quipu.Runtime) error {
			b := below.Of(rt)
			if role == roleWorker {
				return a.bindWorker(ctx, b, grant, login, topics)
			}
			change, is := b.Grant, "has"
			if !grant {
				change, is = b.Revoke, "does not have"
			}
			if err := change(ctx, role, login); err != nil {
				return err
			}
			return a.say(map[string]any{"login": login, "role": role, "granted": grant},
				"login %s %s the role %s of the space %s\n", plain(login), is, role, a.spaceName())
		})
	})
}

// checkBinding checks what somebody asked for.
func checkBinding(grant bool, role string, topics []string) error {
	switch {
	case !slices.Contains(groupRoles, role):
		return fmt.Errorf("role %.40q: use one of %s", role, strings.Join(groupRoles, ", "))
	case role != roleWorker && len(topics) > 0:
		return fmt.Errorf("topics %.200q: only the login of a worker is bound to topics, not that of the role %s", topics, role)
	case role == roleWorker && grant && len(topics) == 0:
		return errors.New("the login of a worker is bound to topics: name them, those of built-in handlers, too")
	}
	for _, topic := range topics {
		if err := transport.ValidateTopic(topic); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) bindWorker(ctx context.Context, b *postgres.Store, grant bool, login string, topics []string) error {
	change := b.GrantWorker
	if !grant {
		change = b.RevokeWorker
	}
	if err := change(ctx, login, topics); err != nil {
		return err
	}
	all, err := b.WorkerTopics(ctx)
	if err != nil {
		return err
	}
	has := all[login]
	text := "no topics"
	if len(has) > 0 {
		text = "the topics " + strings.Join(has, ", ")
	}
	return a.say(map[string]any{"login": login, "topics": append([]string{}, has...)}, "login %s has %s\n", plain(login), text)
}
