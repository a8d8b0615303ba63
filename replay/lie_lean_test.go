package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// folded is two activities, one after the other, whose Leg1 are folded into the entries before:
// 1 created, 2 the trigger, 3 the first, 4 the second, which closes.
func folded() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Activities: 2, Chain: true, Mode: modes["fold"]})
}

// leanLies are about fields that entries leave out: a field is written if it is not what
// follows.
var leanLies = map[string]lie{
	"V1 another space": {plain, replay.V1, 1, "the entry says space other", func(main func(int) *journal.Entry) {
		main(1).Space = "other"
	}},
	"V1 another generation": {plain, replay.V1, 1, "the entry says generation 2", func(main func(int) *journal.Entry) {
		main(1).Generation = 2
	}},
	"V4 a folded Leg1 entered twice": {folded, replay.V4, 3, "positions 2–3 (Leg1 entries) goes 0 → 2", func(main func(int) *journal.Entry) {
		main(3).Dispatched[0].Folded += trillion
		main(4).Ledger += trillion
	}},
	"V4 a folded Leg1 whose work is not done": {folded, replay.V4, 3, "position 4 (Leg1 complete) goes 0 → 0", func(main func(int) *journal.Entry) {
		main(3).Dispatched[0].Folded -= hundredB
	}},
	"V4 a folded Leg1 that answers itself": {folded, replay.V4, 3, "positions 8–15 (Leg2 entries) goes 0 → 1", func(main func(int) *journal.Entry) {
		main(3).Dispatched[0].Folded++
	}},
	"V4 arrivals without a ledger": {plain, replay.V4, 2, "says arrivals, and no ledger", func(main func(int) *journal.Entry) {
		main(2).Dispatched[0].Arrivals = 1
	}},
	"V4 arrivals at what is no join": {folded, replay.V4, 3, "grow by 0, the entry says 1", func(main func(int) *journal.Entry) {
		main(3).Dispatched[0].Arrivals = 1
	}},
	"V6 an element without its input": {listed, replay.V6, 3, "with the inputs of", func(main func(int) *journal.Entry) {
		main(3).Elements.Inputs = main(3).Elements.Inputs[:len(journal.Sum{})]
	}},
	"V10 an input that nobody is sent": {plain, replay.V10, 2, "says what input it sends", func(main func(int) *journal.Entry) {
		main(2).Dispatched[0].Input = journal.Sum{1}
	}},
	"V11 a request that does not derive": {folded, replay.V11, 3, "does not derive from message", func(main func(int) *journal.Entry) {
		g := journal.GUID{1, 2, 3}
		main(3).Dispatched[1].GUID, main(4).Response.Request, main(4).Ended = g, g, g
		main(4).GUID = collation.ResponseGUID(g, 1)
	}},
	"V11 a folded Leg1 that does not derive": {folded, replay.V11, 3, "does not derive from message", func(main func(int) *journal.Entry) {
		g := collation.Leg1GUID(main(2).GUID, "w2", ",0,0,0")
		request := collation.RequestGUID(g, 0)
		main(3).Dispatched[0].GUID, main(3).Dispatched[1].GUID = g, request
		main(4).Response.Request, main(4).Ended, main(4).GUID = request, request, collation.ResponseGUID(request, 1)
	}},
}

// TestLiesAboutWhatFollows gives fields that entries may leave out a false value (2.5, W12).
func TestLiesAboutWhatFollows(t *testing.T) {
	t.Parallel()
	requireLies(t, leanLies)
}

// V4: a message that has its receipt is no longer refused.
func TestRefusedAfterItsReceipt(t *testing.T) {
	t.Parallel()
	forged := plain().Lie(func(entries []*journal.Entry) []*journal.Entry {
		old := entries[3]
		return append(entries, &journal.Entry{
			Job: old.Job, Seq: 9, Kind: journal.KindStale, GUID: old.GUID, Activity: old.Activity, DAD: old.DAD,
		})
	})
	requireOnly(t, forged.Verify(false), replay.V4, 9, "a receipt of it stands already")
}

// V10: the sums of a list's inputs are compared with its open requests.
func TestInputsOfElements(t *testing.T) {
	t.Parallel()
	j := oneListed()
	requireClean(t, j, true)
	edit(j.Stored.Rows, func(_ journal.GUID, r collation.Row) bool { return r.Kind == journal.MessageRequest }, func(r *collation.Row) {
		r.Body = []byte(`"another"`)
	})
	requireOnly(t, j.Verify(true), replay.V10, 0, "the stored input of row")
	require.Nil(t, j.Verify(false).First)
}
