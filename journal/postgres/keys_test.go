package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/keyring"
)

// S1: a space has a key from its first day. Rotated, the old one holds for a day; rotated at once, it does not.
func TestS1Keys(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	k, err := s.Keys(t.Context())
	require.NoError(t, err)
	require.True(t, k.On)
	require.Len(t, k.Roots, 1)
	require.NoError(t, s.Migrate(t.Context()), "again")

	first := keyring.New(k)
	require.NoError(t, s.PutTopicKeys(t.Context(), first.TopicKeys("pay")))
	require.NoError(t, s.PutTopicKeys(t.Context(), first.TopicKeys("pay")), "again")
	id, err := s.RotateKeys(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, 2, id)
	k, err = s.Keys(t.Context())
	require.NoError(t, err)
	require.Len(t, k.Roots, 2)
	require.InDelta(t, keyring.Keep.Microseconds(), k.Roots[0].Ends-k.Roots[1].Signs, 1e6)

	id, err = s.RotateKeys(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 3, id)
	k, err = s.Keys(t.Context())
	require.NoError(t, err)
	for _, old := range k.Roots[:2] {
		require.LessOrEqual(t, old.Ends, k.Now)
	}
	ring := keyring.New(k)
	mac, err := ring.Sign("pay", []byte("x"))
	require.NoError(t, err)
	require.ErrorIs(t, first.Check("pay", mac, []byte("x")), keyring.ErrForged, "it does not know the key yet")
	require.NoError(t, ring.Check("pay", mac, []byte("x")))
	mac, err = first.Sign("pay", []byte("x"))
	require.NoError(t, err)
	require.ErrorIs(t, ring.Check("pay", mac, []byte("x")), keyring.ErrForged)

	require.NoError(t, s.SetSigned(t.Context(), false))
	k, err = s.Keys(t.Context())
	require.NoError(t, err)
	require.False(t, k.On)
	require.NoError(t, keyring.New(k).Check("pay", "", []byte("x")))
}
