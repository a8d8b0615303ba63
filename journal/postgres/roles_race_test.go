package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// S8: roles belong to the server. Two spaces of one name in two of its databases make them, and
// give them to one login, at the same time.
func TestS8RolesOfOneNameInTwoDatabases(t *testing.T) {
	t.Parallel()
	one := func(c *Config) { c.Space = "same-roles" }
	stores := []*Store{fresh(t, one), fresh(t, one)}
	var g errgroup.Group
	for _, s := range stores {
		g.Go(func() error { return s.Roles(t.Context()) })
	}
	require.NoError(t, g.Wait())

	connect := func() *pgx.Conn {
		c := must(pgx.Connect(t.Context(), devtest.Postgres(t)))(t)
		t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
		return c
	}
	other, looks := connect(), connect() // a transaction sees the activity of its first look
	run := func(text string) { must(other.Exec(t.Context(), text))(t) }
	login := "same_roles_login"
	run("CREATE ROLE " + login)
	defer run("DROP ROLE " + login)
	role := pgx.Identifier{RoleName("same-roles", "engine")}.Sanitize()
	grant := "GRANT " + role + " TO " + pgx.Identifier{login}.Sanitize()
	run("BEGIN; " + grant) // as from another database
	g.Go(func() error { return stores[0].Grant(t.Context(), "engine", login) })
	require.Eventually(t, func() bool {
		var waits bool
		err := looks.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query = $1 AND wait_event_type = 'Lock')", grant).Scan(&waits)
		return err == nil && waits
	}, time.Minute, 5*time.Millisecond, "it waits for the other one")
	run("COMMIT")
	require.NoError(t, g.Wait())
}
