package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed roles/roles.sql
var roleGrants string

// roleNames are the group roles of a space (4.5).
var roleNames = []string{"owner", "engine", "worker", "sealer", "retention", "verifier"}

// RoleName is the name of a group role of a space: quipu_<space>_<role>.
func RoleName(space, role string) string { return schemaOf(space) + "_" + role }

// Roles creates the group roles of the space that are missing, and grants each only what it needs
// (4.5): engine, worker, sealer, retention, verifier, and owner, which owns the schema. A login
// becomes a member of the roles that its process plays. Roles needs CREATEROLE and the rights of
// the schema's owner. Repeat it after each migration.
func (s *Store) Roles(ctx context.Context) error {
	return s.call(ctx, "roles", func(c *conn) error {
		var text strings.Builder
		text.WriteString("BEGIN;")
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
		words := []string{"{schema}", pgx.Identifier{s.schema}.Sanitize()}
		for _, role := range roleNames {
			words = append(words, "{role_"+role+"}", pgx.Identifier{RoleName(s.cfg.Space, role)}.Sanitize())
		}
		text.WriteString(strings.NewReplacer(words...).Replace(roleGrants))
		text.WriteString("COMMIT")
		if err := c.exec(ctx, text.String()); err != nil {
			_ = c.exec(context.WithoutCancel(ctx), "ROLLBACK") // ends an open transaction
			return err
		}
		return nil
	})
}
