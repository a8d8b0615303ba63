package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
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
