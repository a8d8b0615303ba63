package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

//go:embed roles/roles.sql
var roleGrants string

//go:embed roles/policies.sql
var rolePolicies string

// roleNames are the group roles of a space (S8).
var roleNames = []string{"owner", "engine", "operator", "worker", "client", "retention", "verifier"}

// RoleName is the name of a group role of a space: quipu_<space>_<role>.
func RoleName(space, role string) string { return schemaOf(space) + "_" + role }

// Roles creates the group roles of the space that are missing, and grants each only what it needs
// (S8): engine, operator, worker, client, retention, verifier, and owner, which owns the schema. A login
// becomes a member of the roles that its process plays; that of a worker is bound to topics by
// GrantWorker. Roles needs CREATEROLE and the rights of the schema's owner. Repeat it after each
// migration.
func (s *Store) Roles(ctx context.Context) error {
	return repeatIfDisturbed(func() error { return s.makeRoles(ctx) })
}

// repeatIfDisturbed begins again where another process makes, gives or takes the same roles. They belong
// to the server, not to the database: no lock of ours holds that process up.
func repeatIfDisturbed(do func() error) error {
	for tries := 1; ; tries++ {
		err := do()
		if pg := serverError(err); pg == nil || tries == maxRoles || !slices.Contains(madeMeanwhile, pg.Code) {
			return err
		}
	}
}

// maxRoles bounds how often that happens.
const maxRoles = 10

// madeMeanwhile are its errors: unique_violation, duplicate_object, and a row of the catalogue that
// was updated at the same time.
var madeMeanwhile = []string{"23505", "42710", "XX000"}

func (s *Store) makeRoles(ctx context.Context) error {
	return s.call(ctx, "roles", func(c *conn) error {
		var text strings.Builder
		for _, role := range roleNames {
			name := RoleName(s.cfg.Space, role)
			results, err := c.pg.Exec(ctx, "SELECT FROM pg_roles WHERE rolname = '"+name+"'").ReadAll()
			if err != nil {
				return err
			}
			if len(results[0].Rows) == 0 {
				fmt.Fprintf(&text, "CREATE ROLE %s NOLOGIN;", pgx.Identifier{name}.Sanitize())
			}
		}
		text.WriteString(s.roleText(roleGrants + rolePolicies))
		return c.between(ctx, "BEGIN;"+text.String(), func() error { return nil })
	})
}

// roleText puts the names of the schema and of the roles into a text.
func (s *Store) roleText(text string) string {
	words := []string{"{schema}", pgx.Identifier{s.schema}.Sanitize(), "{name}", s.schema}
	var all, others []string // others see all rows
	for _, role := range roleNames {
		name := pgx.Identifier{RoleName(s.cfg.Space, role)}.Sanitize()
		words = append(words, "{role_"+role+"}", name)
		if role != "owner" { // it has more rights
			all = append(all, name)
		}
		if role != "worker" && role != "client" && role != "retention" {
			others = append(others, name)
		}
	}
	words = append(words, "{all}", strings.Join(all, ", "), "{others}", strings.Join(others, ", "))
	return strings.NewReplacer(words...).Replace(text)
}

// GrantWorker makes a login a worker of the space, bound to these topics beside those that it has
// (S8). It stores their keys, so that the worker has them with its first request (S1).
// store.ErrNotFound: there is no such login, or the roles were not made.
func (s *Store) GrantWorker(ctx context.Context, login string, topics []string) error {
	if err := s.member(ctx, journal.SpaceGranted, "worker", login, topics); err != nil {
		return err
	}
	keys, err := s.Keys(ctx)
	if err != nil {
		return err
	}
	return s.PutTopicKeys(ctx, derived(keys, topics))
}

// RevokeWorker takes topics from the login of a worker; without topics, all of them, and then it
// is no worker of the space any more (S8).
func (s *Store) RevokeWorker(ctx context.Context, login string, topics []string) error {
	return s.member(ctx, journal.SpaceRevoked, "worker", login, topics)
}

// Grant makes a login a member of a group role of the space other than worker (S8): owner, engine,
// operator, client, retention, verifier. store.ErrNotFound: there is no such login, or the roles
// were not made.
func (s *Store) Grant(ctx context.Context, role, login string) error {
	return s.member(ctx, journal.SpaceGranted, role, login, nil)
}

// Revoke takes a group role other than worker from a login (S8).
func (s *Store) Revoke(ctx context.Context, role, login string) error {
	return s.member(ctx, journal.SpaceRevoked, role, login, nil)
}

// member changes the membership of a login, and the topics of a worker's, with their entry.
func (s *Store) member(ctx context.Context, kind journal.SpaceKind, role, login string, topics []string) error {
	group := RoleName(s.cfg.Space, role)
	statement, params := "topics_revoke", [][]byte{pText(login), pTexts(topics)}
	membership := fmt.Sprintf("REVOKE %s FROM %s", pgx.Identifier{group}.Sanitize(), pgx.Identifier{login}.Sanitize())
	if kind == journal.SpaceGranted {
		statement = "topics_grant"
		membership = fmt.Sprintf("GRANT %s TO %s", pgx.Identifier{group}.Sanitize(), pgx.Identifier{login}.Sanitize())
	} else if len(topics) > 0 {
		membership = "" // it has others, perhaps
	}
	change := func(c *conn) ([]journal.SpaceEntry, error) {
		before, after := 0, 0
		err := c.query(ctx, "role_member", func(row) error { before++; return nil }, pText(group), pText(login))
		if err == nil {
			err = c.exec(ctx, membership)
		}
		if err == nil {
			err = c.query(ctx, "role_member", func(row) error { after++; return nil }, pText(group), pText(login))
		}
		did := before != after
		if err == nil && after > 0 && kind == journal.SpaceRevoked && membership != "" {
			err = fmt.Errorf("%w: login %s is in the role %s by another login: revoke it as that one", store.ErrRejected, login, group)
		}
		if pg := serverError(err); pg != nil && pg.Code == "42704" {
			err = fmt.Errorf("%w: %s: make the login with CREATE ROLE … LOGIN, and the roles of the space with `quipu migrate --roles`", store.ErrNotFound, pg.Message)
		}
		if err == nil && role == "worker" {
			err = c.query(ctx, statement, func(row) error { did = true; return nil }, params...)
		}
		return one(did, kind, map[string]string{"role": role, "login": login, "topics": strings.Join(topics, " ")}), err
	}
	return repeatIfDisturbed(func() error { return s.act(ctx, "roles", change) })
}

// WorkerTopics lists the topics of each login that is bound to some (S8).
func (s *Store) WorkerTopics(ctx context.Context) (map[string][]string, error) {
	all := make(map[string][]string)
	err := s.query(ctx, "topics_list", func() { clear(all) }, func(v row) error {
		all[v.text(0)] = append(all[v.text(0)], v.text(1))
		return nil
	})
	return all, err
}

// OwnTopics lists the topics that this login is bound to as a worker (S8).
func (s *Store) OwnTopics(ctx context.Context) ([]string, error) {
	return readAll(ctx, s, "topics_own", func(v row) (string, error) { return v.text(0), nil })
}

// Withdraw says that the session serves these of its topics no more, because its login has lost them
// (S8).
func (s *Store) Withdraw(ctx context.Context, session int64, topics []string) error {
	_, err := s.change(ctx, "session_withdraw", pInt(session), pTexts(topics))
	return err
}
