package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/keyring"
)

// S1: a space has a key from its first day. Rotated, the old one holds for a day; rotated at once, it does not.
func TestS1Keys(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	k := must(s.Keys(t.Context()))(t)
	require.True(t, k.On)
	require.Len(t, k.Roots, 1)
	require.NoError(t, s.Migrate(t.Context()), "again")

	first := keyring.New(k)
	require.NoError(t, s.PutTopicKeys(t.Context(), first.TopicKeys("pay")))
	require.NoError(t, s.PutTopicKeys(t.Context(), first.TopicKeys("pay")), "again")
	id := must(s.RotateKeys(t.Context(), false))(t)
	require.Equal(t, 2, id)
	k = must(s.Keys(t.Context()))(t)
	require.Len(t, k.Roots, 2)
	require.InDelta(t, keyring.Keep.Microseconds(), k.Roots[0].Ends-k.Roots[1].Signs, 1e6)

	id = must(s.RotateKeys(t.Context(), true))(t)
	require.Equal(t, 3, id)
	k = must(s.Keys(t.Context()))(t)
	for _, old := range k.Roots[:2] {
		require.LessOrEqual(t, old.Ends, k.Now)
	}
	ring := keyring.New(k)
	mac := must(ring.Sign("pay", []byte("x")))(t)
	require.ErrorIs(t, first.Check("pay", mac, []byte("x")), keyring.ErrForged, "it does not know the key yet")
	require.NoError(t, ring.Check("pay", mac, []byte("x")))
	mac = must(first.Sign("pay", []byte("x")))(t)
	require.ErrorIs(t, ring.Check("pay", mac, []byte("x")), keyring.ErrForged)

	require.NoError(t, s.SetSigned(t.Context(), false))
	k = must(s.Keys(t.Context()))(t)
	require.False(t, k.On)
	require.NoError(t, keyring.New(k).Check("pay", "", []byte("x")))
}
