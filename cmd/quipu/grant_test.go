package main

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/dev/devtest"
)

// S8: a login is bound to topics, and loses them.
func TestGrantsTopicsToALogin_S8(t *testing.T) {
	t.Parallel()
	s := &space{t: t, env: map[string]string{"QUIPU_POSTGRES": devtest.Postgres(t), "QUIPU_SPACE": "granted"}}
	s.ok("", "migrate", "--roles")
	admin, err := pgx.Connect(t.Context(), s.env["QUIPU_POSTGRES"])
	require.NoError(t, err)
	defer func() { _ = admin.Close(t.Context()) }()
	_, err = admin.Exec(t.Context(), "CREATE ROLE granted_payments LOGIN")
	require.NoError(t, err)

	require.Equal(t, "login granted_payments has the topics pay.charge, pay.refund\n",
		s.ok("", "grant", "worker", "granted_payments", "pay.refund", "pay.charge"))
	require.Equal(t, map[string]any{"login": "granted_payments", "topics": []any{"pay.charge"}},
		objects(t, s.ok("", "revoke", "worker", "granted_payments", "pay.refund", "-o", "json"))[0])
	require.Equal(t, "login granted_payments has no topics\n", s.ok("", "revoke", "worker", "granted_payments"))
	require.Contains(t, s.fails(cli.CodeUsage, "", "grant", "worker", "granted_payments", "Pay/1").Err, "Pay/1")
	require.Contains(t, s.fails(codeNotFound, "", "grant", "worker", "granted_nobody", "pay").Err, "CREATE ROLE … LOGIN")
	_, err = admin.Exec(t.Context(), "DROP ROLE granted_payments")
	require.NoError(t, err)
}

// S7: what was accepted stands in the space's own chain, once, with who and by which login.
func TestAcceptsAWeakness_S7(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	admin, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { _ = admin.Close(t.Context()) }()
	var db string
	require.NoError(t, admin.QueryRow(t.Context(), "SELECT current_database()").Scan(&db))
	_, err = admin.Exec(t.Context(), "ALTER DATABASE "+pgx.Identifier{db}.Sanitize()+" SET synchronous_commit = off")
	require.NoError(t, err)
	s := &space{t: t, env: map[string]string{"QUIPU_POSTGRES": dsn, "USER": "ada"}}
	require.Contains(t, s.do("", "migrate").Err, "--accept synchronous-commit-off")
	for range 2 {
		s.ok("", "migrate", "--accept", "synchronous-commit-off")
	}
	log := objects(t, s.ok("", "space", "log", "-o", "json"))
	require.Len(t, log, 1)
	require.Subset(t, log[0], map[string]any{
		"seq": 1.0, "entry": "accepted", "who": "ada", "login": "quipu",
		"facts": map[string]any{"check": "synchronous-commit-off", "value": "off"},
	})
}
