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

// TestOverdueRequestsAreTold: a request that was turned into an answer because its time passed
// has an entry (S12, E9), and that entry does nothing else.
func TestOverdueRequestsAreTold(t *testing.T) {
	t.Parallel()
	turned := func(change func(e *journal.Entry)) *replaytest.Journal {
		j := suspended()
		edit(j.Stored.Rows, isRequest, func(r *collation.Row) { r.Kind = journal.MessageAnswer })
		if change == nil {
			return j
		}
		return j.Lie(func(entries []*journal.Entry) []*journal.Entry {
			request := entries[3].Updated[0].GUID
			e := &journal.Entry{
				Job: entries[0].Job, Seq: 5, Kind: journal.KindOverdue, GUID: request, Activity: "fn", DAD: ",0,0",
				Updated: []journal.Updated{{GUID: request, Kind: journal.MessageAnswer, Turn: 2, Attempt: 1, NextAt: 1}},
			}
			change(e)
			return append(entries, e)
		})
	}
	requireOnly(t, turned(nil).Verify(true), replay.V10, 0, "is answer, the entries give request")
	requireClean(t, turned(func(*journal.Entry) {}), true)
	for name, c := range map[string]struct {
		check  replay.Check
		words  string
		change func(e *journal.Entry)
	}{
		"it stays a request": {replay.V10, "only a request that is past its time", func(e *journal.Entry) { e.Updated[0].Kind = journal.MessageRequest }},
		"it is held":         {replay.V10, "only a request that is past its time", func(e *journal.Entry) { e.Updated[0].Held = collation.HeldStuck }},
		"it is never due":    {replay.V10, "only a request that is past its time", func(e *journal.Entry) { e.Updated[0].NextAt = 0 }},
		"nothing turns":      {replay.V10, "does something else", func(e *journal.Entry) { e.Updated = nil }},
		"it ends a row":      {replay.V10, "does something else", func(e *journal.Entry) { e.Cancelled = []journal.GUID{e.GUID} }},
		"its turn goes on":   {replay.V12, "the entry allows turn 2", func(e *journal.Entry) { e.Updated[0].Turn = 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := turned(c.change).Verify(false).Result(c.check).Violation
			require.NotNil(t, v)
			require.Equal(t, int64(5), v.Seq)
			require.Contains(t, v.Message, c.words)
		})
	}
}

// parkedFor is a function that was parked for an effect of unknown outcome, which ended then.
func parkedFor(release func(request journal.GUID) []journal.Updated) *replaytest.Journal {
	j := function().Start("1", "pay", "guarded").
		Answer(&journal.Response{Kind: journal.ResponseParked, Code: 500, Error: &journal.Failure{Class: "parked", Message: "unknown"}}).
		Complete("1", "pay", "guarded", `1`).Journal()
	return j.Lie(func(entries []*journal.Entry) []*journal.Entry {
		last := entries[len(entries)-1]
		last.Updated = release(last.Chain)
		return entries
	})
}

// TestReleasedRequestsAreTold: the end of an effect that releases the row that was parked for it
// says so (S12, E4), of the turn in which it was parked.
func TestReleasedRequestsAreTold(t *testing.T) {
	t.Parallel()
	update := journal.Updated{Kind: journal.MessageRequest, Turn: 2, Attempt: 1, NextAt: 1}
	free := func(j *replaytest.Journal) *replaytest.Journal {
		edit(j.Stored.Rows, isRequest, func(r *collation.Row) {
			r.Held, r.NextAt = "", 1
			r.Effects = journal.Head{Seq: 2, Hash: j.Records[len(j.Records)-1].Hash}
		})
		return j
	}
	released := func(change func(u *journal.Updated)) *replaytest.Journal {
		return free(parkedFor(func(request journal.GUID) []journal.Updated {
			u := update
			u.GUID = request
			change(&u)
			return []journal.Updated{u}
		}))
	}
	none := func(journal.GUID) []journal.Updated { return nil }
	requireOnly(t, free(parkedFor(none)).Verify(true), replay.V10, 0, "the stored reason for being held")
	j := released(func(*journal.Updated) {})
	requireClean(t, j, true)
	for name, change := range map[string]func(u *journal.Updated){
		"of another turn": func(u *journal.Updated) { u.Turn = 1 },
		"of another row":  func(u *journal.Updated) { u.GUID[0] ^= 1 },
		"into an answer":  func(u *journal.Updated) { u.Kind = journal.MessageAnswer },
		"held":            func(u *journal.Updated) { u.Held = collation.HeldStuck },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := released(change).Verify(false).Result(replay.V10).Violation
			require.NotNil(t, v)
			require.Contains(t, v.Message, "it was not parked then, or is another's")
		})
	}
	// The chains may be applied in any order.
	one, other := replay.New(j.Header), replay.New(j.Header)
	for _, rec := range j.Records {
		require.NoError(t, one.Apply(rec))
	}
	effects := slices.IndexFunc(j.Records, func(r journal.Record) bool { return !r.Chain.IsZero() })
	for _, rec := range append(slices.Clone(j.Records[effects:]), j.Records[:effects]...) {
		require.NoError(t, other.Apply(rec))
	}
	require.Equal(t, one.Digest(), other.Digest())
}

// TestUndeliveredSignalsAreNamed: a close that cancels the wake-up of a repeating hook which
// nobody handled names its signal (S12), so that its id is no mere claim.
func TestUndeliveredSignalsAreNamed(t *testing.T) {
	t.Parallel()
	j := repeatedFailure()
	requireClean(t, j, true)
	var wait journal.GUID
	for _, e := range j.Entries() {
		for i := range e.Waits {
			wait = e.Waits[i].GUID
		}
	}
	signal := journal.GUID{2}
	cancelled := func(change func(e *journal.Entry)) *replaytest.Journal {
		return j.Lie(func(entries []*journal.Entry) []*journal.Entry {
			last := entries[len(entries)-1]
			last.CancelledByClose = append(last.CancelledByClose, collation.SignalledGUID(wait, signal))
			last.Undelivered = []journal.Delivery{{Activity: "h", DAD: ",0,0", Signal: signal, Number: 1}}
			change(last)
			return entries
		})
	}
	requireClean(t, cancelled(func(*journal.Entry) {}), false)
	for name, c := range map[string]struct {
		check  replay.Check
		words  string
		change func(e *journal.Entry)
	}{
		"no signal":       {replay.V10, "it was never dispatched", func(e *journal.Entry) { e.Undelivered = nil }},
		"another signal":  {replay.V11, "neither refused nor held nor cancelled", func(e *journal.Entry) { e.Undelivered[0].Signal[0] ^= 1 }},
		"another hook":    {replay.V11, "0 of them derive from waits of this job", func(e *journal.Entry) { e.Undelivered[0].Activity = "w" }},
		"no number":       {replay.V13, "without a number", func(e *journal.Entry) { e.Undelivered[0].Number = 0 }},
		"its wait stands": {replay.V13, "the close leaves the wait", func(e *journal.Entry) { e.CancelledByClose = e.CancelledByClose[len(e.CancelledByClose)-1:] }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := cancelled(c.change).Verify(false).Result(c.check).Violation
			require.NotNil(t, v)
			require.Contains(t, v.Message, c.words)
		})
	}
}
