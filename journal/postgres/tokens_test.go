package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/access"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal/store"
)

// O11: a token holds until it ends or is revoked; what is stored of it is no token.
func TestO11Tokens(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	token := access.NewToken()
	hash, ok := access.Hash(token)
	require.True(t, ok)
	require.NoError(t, s.AddToken(t.Context(), hash, "shop", access.Client, 0))
	got := must(s.FindToken(t.Context(), hash))(t)
	require.Equal(t, Token{Name: "shop", Role: access.Client, Made: got.Made, Ends: collation.Never}, got)

	other, _ := access.Hash(access.NewToken())
	require.ErrorIs(t, s.AddToken(t.Context(), other, "shop", access.Viewer, 0), store.ErrRejected, "a name has one token")
	require.ErrorIs(t, failed(s.FindToken(t.Context(), other)), store.ErrNotFound)

	require.NoError(t, s.AddToken(t.Context(), other, "ada", access.Operator, time.Microsecond))
	require.ErrorIs(t, failed(s.FindToken(t.Context(), other)), store.ErrNotFound, "it has ended")
	all := must(s.Tokens(t.Context()))(t)
	require.Len(t, all, 2)
	require.Equal(t, []string{"shop", "ada"}, []string{all[0].Name, all[1].Name})

	require.NoError(t, s.RevokeToken(t.Context(), "shop"))
	require.ErrorIs(t, s.RevokeToken(t.Context(), "shop"), store.ErrNotFound)
	require.ErrorIs(t, failed(s.FindToken(t.Context(), hash)), store.ErrNotFound)
}

// O11, 4.5: engines and operators look tokens up, only the owner makes them, and a reader of the journal does
// not see them.
func TestO11TokensOfRoles(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "roles" })
	require.NoError(t, s.Roles(t.Context()))
	hash, _ := access.Hash(access.NewToken())
	require.NoError(t, s.AddToken(t.Context(), hash, "shop", access.Client, 0))
	for _, role := range []string{"engine", "operator"} {
		serves := as(t, s, role)
		must(serves.FindToken(t.Context(), hash))(t)
		requireForbidden(t, serves.run(t, "UPDATE tokens SET role = 'operator'"), role, "UPDATE tokens")
		requireForbidden(t, serves.RevokeToken(t.Context(), "shop"), role, "revoke")
	}
	for _, role := range []string{"worker", "client", "retention", "verifier"} {
		requireForbidden(t, as(t, s, role).run(t, "SELECT FROM tokens"), role, "tokens")
	}
}
