package api_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// O11: who tries tokens makes few queries, and locks nobody out: a token that holds is known
// meanwhile, one that was just made a moment later, and one that was revoked at once no more.
func TestO11TriedTokensMakeFewQueries(t *testing.T) {
	t.Parallel()
	ctx, dsn := t.Context(), devtest.Postgres(t)
	open := func() *quipu.Runtime {
		rt, err := quipu.Open(ctx, quipu.Config{Postgres: dsn, MaxConns: 4})
		require.NoError(t, err)
		return rt
	}
	rt := open()
	holds := func(token string) bool {
		_, holds, err := rt.Tokens().Who(ctx, token)
		require.NoError(t, err)
		return holds
	}
	made := func(name string) string {
		token, err := rt.Tokens().Create(ctx, name, access.Client, 0)
		require.NoError(t, err)
		return token
	}
	old := made("old")
	const tried = 10_000
	for range tried {
		require.False(t, holds(access.NewToken()))
	}
	require.True(t, holds(old), "it was not asked with before")
	fresh := made("fresh")
	for !holds(fresh) {
		require.False(t, holds(access.NewToken()), "others go on trying")
	}
	require.NoError(t, rt.Tokens().Revoke(ctx, "old"))
	require.False(t, holds(old))
	rt.Close()

	admin, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close(ctx)) }()
	require.Eventually(t, func() (alone bool) { // a connection counts, at the latest, when it ends
		require.NoError(t, admin.QueryRow(ctx, `SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`).Scan(&alone))
		return alone
	}, time.Minute, 20*time.Millisecond)
	var scans int
	require.NoError(t, admin.QueryRow(ctx, `SELECT seq_scan + idx_scan FROM pg_stat_user_tables WHERE relname = 'tokens'`).Scan(&scans))
	require.Positive(t, scans)
	require.Less(t, scans, tried/10, "queries of %d tries", tried)
}
