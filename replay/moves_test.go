package replay_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// released tells, if it is to, that the end of the effect of parked released its row.
func released(told bool) *replaytest.Journal {
	j := made("parked").Lie(func(entries []*journal.Entry) []*journal.Entry {
		if last := entries[len(entries)-1]; told {
			last.Updated = []journal.Updated{{GUID: last.Chain, Kind: journal.MessageRequest, Turn: 2, Attempt: 1, NextAt: 1}}
		}
		return entries
	})
	alter(j.Stored.Rows, isRequest, func(r *collation.Row) {
		r.Held, r.NextAt = "", 1
		r.Effects = journal.Head{Seq: 2, Hash: j.Records[len(j.Records)-1].Hash}
	})
	return j
}

// Moves outside the protocol are told (S12), so that the tables follow from the entries.
func TestMovesAreTold(t *testing.T) {
	t.Parallel()
	requireOnly(t, released(false).Verify(true), replay.V10, 0, "the stored reason for being held")
	j := released(true)
	requireClean(t, j, true)
	// The chains may be applied in any order.
	other := replay.New(j.Header)
	effects := slices.IndexFunc(j.Records, func(r journal.Record) bool { return !r.Chain.IsZero() })
	for _, rec := range append(slices.Clone(j.Records[effects:]), j.Records[:effects]...) {
		require.NoError(t, other.Apply(rec))
	}
	require.Equal(t, apply(t, j, len(j.Records)).Digest(), other.Digest())
}
