package main

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
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

	require.Equal(t, "login granted_payments has the role engine of the space granted\n", s.ok("", "grant", "engine", "granted_payments"))
	var member bool
	has := func() bool {
		require.NoError(t, admin.QueryRow(t.Context(), "SELECT pg_has_role('granted_payments', 'quipu_granted_engine', 'MEMBER')").Scan(&member))
		return member
	}
	require.True(t, has())
	require.Equal(t, map[string]any{"login": "granted_payments", "role": "engine", "granted": false},
		objects(t, s.ok("", "revoke", "engine", "granted_payments", "-o", "json"))[0])
	require.False(t, has())
	require.Contains(t, s.fails(codeNotFound, "", "grant", "verifier", "granted_nobody").Err, "CREATE ROLE … LOGIN")
	require.Contains(t, s.fails(codeNotFound, "", "revoke", "verifier", "granted_nobody").Err, "CREATE ROLE … LOGIN")
	require.Contains(t, s.fails(cli.CodeUsage, "", "grant", "boss", "granted_payments").Err, "use one of owner, engine")
	require.Contains(t, s.fails(cli.CodeUsage, "", "grant", "engine", "granted_payments", "pay").Err, "only the login of a worker")
	require.Contains(t, s.fails(cli.CodeUsage, "", "grant", "worker", "granted_payments").Err, "bound to topics")
	_, err = admin.Exec(t.Context(), "DROP ROLE granted_payments")
	require.NoError(t, err)
}

// S7: each act on the space stands in the space's own chain, with who and by which login, also those of
// the commands that only the owner may use.
func TestActsOnTheSpaceAreJournaled_S7(t *testing.T) {
	t.Parallel()
	s := &space{t: t, env: map[string]string{"QUIPU_POSTGRES": devtest.Postgres(t), "QUIPU_SPACE": "acts", "USER": "ada"}}
	s.ok("", "migrate", "--roles", "--private-keys", "--expire", "48h")
	s.ok("", "migrate", "--private-keys", "--expire", "48h") // nothing new
	s.ok("", "grant", "worker", "quipu", "pay.charge", "pay.refund")
	s.ok("", "grant", "worker", "quipu", "pay.charge") // nothing new
	s.ok("", "revoke", "worker", "quipu")
	s.ok("", "grant", "verifier", "quipu")
	s.ok("", "token", "create", "shop", "--role", "client", "--for", "24h")
	s.fails(codeRefused, "", "token", "create", "shop")
	s.ok("", "token", "revoke", "shop")
	s.ok("", "keys", "rotate", "--now")
	s.ok("", "keys", "off")
	s.ok("", "recover", "--dry-run", "--lost-writes")
	s.ok("", "recover", "--on-promotion", "continue")
	s.ok("", "recover", "--lost-writes", "--lost-starts", "1m")
	first := objects(t, s.deploy("hello", "1", "echo", `{}`, "-o", "json"))[0]["digest"]
	s.deploy("hello", "1", "echo", `{}`) // nothing new
	second := objects(t, s.deploy("hello", "2", "echo", `{}`, "--inactive", "-o", "json"))[0]["digest"]
	s.ok("", "activate", "hello", "2")
	s.ok("", "activate", "hello", "2") // nothing new
	s.fails(codeNotFound, "", "activate", "hello", "3")
	var got [][2]any
	for _, e := range objects(t, s.ok("", "space", "log", "-o", "json")) {
		require.Subset(t, e, map[string]any{"who": "ada", "login": "quipu"})
		got = append(got, [2]any{e["entry"], e["facts"]})
	}
	type facts = map[string]any
	require.Equal(t, [][2]any{
		{"private-keys", facts{}},
		{"expire", facts{"after": "48h0m0s"}},
		{"granted", facts{"role": "worker", "login": "quipu", "topics": "pay.charge pay.refund"}},
		{"revoked", facts{"role": "worker", "login": "quipu", "topics": ""}},
		{"granted", facts{"role": "verifier", "login": "quipu", "topics": ""}},
		{"token-made", facts{"name": "shop", "role": "client", "holds": "24h0m0s"}},
		{"token-revoked", facts{"name": "shop"}},
		{"key-added", facts{"key": "2", "others": "hold for 0s"}},
		{"signing", facts{"messages": "unsigned"}},
		{"on-promotion", facts{"processes": "continue"}},
		{"recovered", facts{"why": "", "before": "1", "epoch": "2", "lost": "writes", "starts": "1m0s"}},
		{"deployed", facts{"flow": "hello", "version": "1", "digest": first, "active": "yes"}},
		{"deployed", facts{"flow": "hello", "version": "2", "digest": second, "active": "no"}},
		{"activated", facts{"flow": "hello", "version": "2", "before": "1"}},
	}, got)
	require.Regexp(t, `granted +ada +quipu .*login=quipu role=verifier`, s.ok("", "space", "log"))
	s.ok("", "revoke", "verifier", "quipu") // roles are those of the server, which this test may meet again
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

// S3: the key of a topic that nobody has is printed with a warning that names those that are like it.
func TestTopicKeyWarnsOfAStrangeTopic_S3(t *testing.T) {
	t.Parallel()
	s := &space{t: t, env: map[string]string{"QUIPU_POSTGRES": devtest.Postgres(t), "QUIPU_SPACE": "strange"}}
	s.ok("", "migrate", "--roles")
	s.ok("", "grant", "worker", "quipu", "labels.print", "labels.paint", "pay")
	got := s.do("", "topic-key", "labels.print")
	require.Equal(t, 0, got.Code)
	require.Empty(t, got.Err)
	got = s.do("", "topic-key", "label.print")
	require.Equal(t, 0, got.Code)
	require.Regexp(t, `^1:[0-9a-f]{64}\n$`, got.Out)
	require.Equal(t, "no flow and no worker of the space strange has the topic label.print; like it are labels.print, labels.paint\n", got.Err)
	require.Equal(t, "no flow and no worker of the space strange has the topic x\n", s.do("", "topic-key", "x").Err)
	s.ok("", "revoke", "worker", "quipu")
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]int{{"", ""}: 0, {"a", ""}: 1, {"", "ab"}: 2, {"abc", "abc"}: 0, {"label", "labels"}: 1, {"kitten", "sitting"}: 3} {
		require.Equal(t, want, distance(pair[0], pair[1]), pair)
	}
}
