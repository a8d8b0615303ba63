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

// overdue is suspended, whose request was turned into an answer because its time passed (E9): 5.
func overdue() *replaytest.Journal {
	j := suspended()
	alter(j.Stored.Rows, isRequest, func(r *collation.Row) { r.Kind = journal.MessageAnswer })
	return j.Lie(func(entries []*journal.Entry) []*journal.Entry {
		request := entries[3].Updated[0].GUID
		return append(entries, &journal.Entry{
			Job: entries[0].Job, Seq: 5, Kind: journal.KindOverdue, GUID: request, Activity: "fn", DAD: ",0,0",
			Updated: []journal.Updated{{GUID: request, Kind: journal.MessageAnswer, Turn: 2, Attempt: 1, NextAt: 1}},
		})
	})
}

// released is a function that was parked for an effect of unknown outcome: the end of that
// releases its row (E4), and says so.
func released() *replaytest.Journal { return releasedBy(true) }

func releasedBy(entry bool) *replaytest.Journal {
	j := function().Start("1", "pay", "guarded").
		Answer(&journal.Response{Kind: journal.ResponseParked, Code: 500, Error: &journal.Failure{Class: "parked", Message: "unknown"}}).
		Complete("1", "pay", "guarded", `1`).Journal()
	j = j.Lie(func(entries []*journal.Entry) []*journal.Entry {
		last := entries[len(entries)-1]
		if entry {
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

// undelivered is a repeating hook beside a worker that fails the job, and a close that cancels a
// wake-up of the hook which nobody handled. It names its signal, so that its id is no mere claim.
func undelivered() *replaytest.Journal {
	return repeatedFailure().Lie(func(entries []*journal.Entry) []*journal.Entry {
		var wait journal.GUID
		for _, e := range entries {
			for i := range e.Waits {
				wait = e.Waits[i].GUID
			}
		}
		last := entries[len(entries)-1]
		last.CancelledByClose = append(last.CancelledByClose, collation.SignalledGUID(wait, journal.GUID{2}))
		last.Undelivered = []journal.Delivery{{Activity: "h", DAD: ",0,0", Signal: journal.GUID{2}, Number: 1}}
		return entries
	})
}

// Moves outside the protocol are told (S12), so that the tables follow from the entries.
func TestMovesAreTold(t *testing.T) {
	t.Parallel()
	requireClean(t, repeatedFailure(), true)
	requireClean(t, undelivered(), false)
	requireClean(t, overdue(), true)
	requireOnly(t, releasedBy(false).Verify(true), replay.V10, 0, "the stored reason for being held")
	j := released()
	requireClean(t, j, true)
	// The chains may be applied in any order.
	other := replay.New(j.Header)
	effects := slices.IndexFunc(j.Records, func(r journal.Record) bool { return !r.Chain.IsZero() })
	for _, rec := range append(slices.Clone(j.Records[effects:]), j.Records[:effects]...) {
		require.NoError(t, other.Apply(rec))
	}
	require.Equal(t, apply(t, j, len(j.Records)).Digest(), other.Digest())
}
