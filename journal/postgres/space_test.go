package postgres

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// S7, J4: an act on the space and its entry commit together, or not at all; and an act whose commit had an unknown
// outcome is not done twice.
func TestActsOnTheSpace_S7(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	times := 0
	act := func(tried **journal.Record, fail error) error {
		return s.with(t.Context(), func(c *conn) error {
			return s.actOn(t.Context(), c, tried, func(c *conn) ([]journal.SpaceEntry, error) {
				times++
				if err := c.query(t.Context(), "keys_add", nil, newSecret(), pInt(0)); err != nil {
					return nil, err
				}
				return one(true, journal.SpaceTokenRevoked, map[string]string{"name": "shop"}), fail
			})
		})
	}
	holds := func(keys int) {
		t.Helper()
		k := must(s.Keys(t.Context()))(t)
		require.Len(t, k.Roots, keys)
		chain := must(s.SpaceChain(t.Context()))(t)
		require.Len(t, chain.Entries, keys-1)
		require.False(t, replay.VerifySpace(chain).Violated())
	}
	var tried *journal.Record
	failed := errors.New("failed")
	require.ErrorIs(t, act(&tried, failed), failed)
	holds(1)
	require.NoError(t, act(&tried, nil))
	holds(2)
	require.NoError(t, act(&tried, nil), "the same call again finds what it wrote")
	require.Equal(t, 2, times)
	holds(2)
	tried = nil
	require.NoError(t, act(&tried, nil), "another call")
	holds(3)

	for range 2 { // only what changes something is written
		require.NoError(t, s.SetSigned(t.Context(), false))
		require.NoError(t, s.OnPromotion(t.Context(), false))
	}
	chain := must(s.SpaceChain(t.Context()))(t)
	require.Len(t, chain.Entries, 3)
}
