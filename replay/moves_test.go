package replay_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// Moves outside the protocol are told (S12), so that the tables follow from the entries: here the
// end of an effect releases the row of its request.
func TestMovesAreTold(t *testing.T) {
	t.Parallel()
	j := made("parked")
	requireClean(t, j, true)
	untold := j.Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[len(entries)-1].Updated = nil
		return entries
	})
	alter(untold.Stored.Rows, isRequest, func(r *collation.Row) {
		r.Effects.Hash = untold.Records[len(j.Records)-1].Hash
	})
	requireOnly(t, untold.Verify(true), replay.V10, 0, "the stored reason for being held")
	// The chains may be applied in any order.
	other := replay.New(j.Header)
	effects := slices.IndexFunc(j.Records, func(r journal.Record) bool { return !r.Chain.IsZero() })
	for _, rec := range append(slices.Clone(j.Records[effects:]), j.Records[:effects]...) {
		require.NoError(t, other.Apply(rec))
	}
	require.Equal(t, apply(t, j, len(j.Records)).Digest(), other.Digest())
}
