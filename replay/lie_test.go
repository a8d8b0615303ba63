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

// lie is a forgery with all hashes and heads computed anew.
type lie struct {
	base  func() *replaytest.Journal
	check replay.Check
	seq   int64
	words string
	// change edits the entries; main returns the entry with that seq.
	change func(main func(seq int) *journal.Entry)
}

// Digit weights, as in the spec.
const (
	trillion  = 1_000_000_000_000
	hundredB  = 100_000_000_000
	tenB      = 10_000_000_000
	oneB      = 1_000_000_000
	hundredM  = 100_000_000
	finalized = 200_000_000_000_000
)

var digitLies = map[string]lie{
	"V4 Leg1 counted twice": {plain, replay.V4, 3, "positions 2–3 (Leg1 entries) goes 0 → 2", func(main func(int) *journal.Entry) {
		main(3).Ledger += trillion
		main(4).Ledger += trillion
	}},
	"V4 Leg1 work without its digit": {plain, replay.V4, 3, "position 4 (Leg1 complete) goes 0 → 0", func(main func(int) *journal.Entry) {
		main(3).Ledger -= hundredB
	}},
	"V4 a Leg1 taken back": {plain, replay.V4, 4, "position 4 (Leg1 complete) goes 1 → 0", func(main func(int) *journal.Entry) {
		main(4).Ledger -= hundredB
	}},
	"V4 a response counted twice": {plain, replay.V4, 4, "positions 8–15 (Leg2 entries) goes 0 → 2", func(main func(int) *journal.Entry) {
		main(4).Ledger++
	}},
	"V4 not finalized": {plain, replay.V4, 4, "position 1 (state) goes 0 → 0", func(main func(int) *journal.Entry) {
		main(4).Ledger -= finalized
	}},
	"V4 a carry that adds up": {plain, replay.V4, 4, "positions 6–7 (arrivals) goes 0 → 1", func(main func(int) *journal.Entry) {
		main(4).Ledger += hundredM - 1
	}},
	"V4 no ledger moved": {plain, replay.V4, 8, "does not move", func(main func(int) *journal.Entry) { main(8).Ledger = 0 }},
	"V4 another's ledger moved": {plain, replay.V4, 6, "ledger of w1", func(main func(int) *journal.Entry) {
		main(6).Joins = []journal.LedgerMove{{Activity: "w1", DAD: main(4).DAD, After: main(4).Ledger + 1}}
	}},
	"V4 a ledger moved twice": {plain, replay.V4, 8, "moved twice", func(main func(int) *journal.Entry) {
		main(8).Joins = []journal.LedgerMove{{Activity: main(8).Activity, DAD: main(8).DAD, After: main(8).Ledger}}
	}},
	"V4 a trigger born wrong": {plain, replay.V4, 1, "position 1 (state) goes 0 → 0", func(main func(int) *journal.Entry) {
		main(1).Ledger -= finalized / 2
	}},
	"V4 a step without its digit": {plain, replay.V4, 8, "position 6 (step 2) goes 0 → 0", func(main func(int) *journal.Entry) {
		main(8).Receipt -= oneB
		main(8).Ended = journal.GUID{} // its last marker is not set
	}},
	"V4 a digit without its step": {plain, replay.V4, 4, "position 4 (snapshot) goes 0 → 1", func(main func(int) *journal.Entry) {
		main(4).Receipt += hundredB + hundredM
	}},
	"V4 a marker digit 2": {plain, replay.V4, 4, "position 5 (step 1) goes 0 → 2", func(main func(int) *journal.Entry) {
		main(4).Receipt += tenB
	}},
	"V4 a receipt from another value": {plain, replay.V4, 2, "position 5 (step 1) goes 1 → 0", func(main func(int) *journal.Entry) {
		main(2).Receipt -= tenB
	}},
	"V4 a receipt begun anew": {stepped, replay.V4, 6, "positions 8–15 (ordinal) goes 1 → 0", func(main func(int) *journal.Entry) {
		main(6).Receipt--
	}},
	"V5 an ordinal skipped": {plain, replay.V5, 4, "are 2, the next of w1 ,0,0 is 1", func(main func(int) *journal.Entry) {
		main(4).Receipt++
	}},
	"V5 an ordinal twice": {retried, replay.V5, 5, "are 1, the next of w1 ,0,0 is 2", func(main func(int) *journal.Entry) {
		main(5).Receipt--
	}},
	"V5 an ordinal of a start": {plain, replay.V5, 1, "counts no Leg2 entry", func(main func(int) *journal.Entry) {
		for seq := 1; seq <= 2; seq++ {
			main(seq).Receipt++
		}
	}},
	"V6 one too many": {plain, replay.V6, 4, "goes 1 → 2, +1", func(main func(int) *journal.Entry) { *main(4).Semaphore = 2 }},
	"V6 not said":     {plain, replay.V6, 4, "does not say", func(main func(int) *journal.Entry) { main(4).Semaphore = nil }},
	"V6 moved by a Leg1": {plain, replay.V6, 3, "marks [entered work] moves", func(main func(int) *journal.Entry) {
		main(3).Semaphore = main(2).Semaphore
	}},
	"V6 abandoned by no close": {plain, replay.V6, 4, "abandoned by an entry that closes nothing", func(main func(int) *journal.Entry) {
		main(4).Abandoned = 1
	}},
	"V6 a pending response ends nothing": {retried, replay.V6, 4, "an obligation ended: false", func(main func(int) *journal.Entry) {
		*main(4).Semaphore = 2
		*main(5).Semaphore = 1
	}},
}

var closeLies = map[string]lie{
	"V7 no snapshot": {plain, replay.V7, 8, "position 4 (snapshot) is not set", func(main func(int) *journal.Entry) {
		e := main(8)
		e.Marks, e.Close = e.Marks[:3], nil
		e.Receipt -= hundredB + hundredM
	}},
	"V7 a success fails the job": {plain, replay.V7, 8, "its closing message brought code 200", func(main func(int) *journal.Entry) {
		main(8).Close.State, main(8).Close.Code, main(8).Close.Output = journal.JobFailed, 0, nil
		main(8).Close.Error = &journal.Failure{Class: "error", Message: "w failed"}
	}},
	"V7 the end is not said": {plain, replay.V7, 8, "does not say how", func(main func(int) *journal.Entry) { main(8).Close = nil }},
	"V7 an end without a close": {plain, replay.V7, 4, "an entry that does not close", func(main func(int) *journal.Entry) {
		main(4).Close = &journal.Close{State: journal.JobCompleted}
	}},
	"V10 a dispatch unwritten": {plain, replay.V10, 4, "it has no row; it was never dispatched", func(main func(int) *journal.Entry) {
		main(3).Dispatched = nil
	}},
	"V10 a dispatch again": {stepped, replay.V10, 4, "dispatched again, it stands since entry 3", func(main func(int) *journal.Entry) {
		main(3).Dispatched = main(4).Dispatched
	}},
	"V10 a dispatch twice": {plain, replay.V10, 3, "dispatched twice by this entry", func(main func(int) *journal.Entry) {
		main(3).Dispatched = append(main(3).Dispatched, main(3).Dispatched[0])
	}},
	"V10 a row ends in two ways": {failing, replay.V10, 5, "ends twice in this entry", func(main func(int) *journal.Entry) {
		main(5).CancelledByClose = append(main(5).CancelledByClose, main(5).Ended)
	}},
	"V10 a row updated twice": {retried, replay.V10, 4, "updated twice by this entry", func(main func(int) *journal.Entry) {
		main(4).Updated = append(main(4).Updated, main(4).Updated[0])
	}},
	"V10 a row not ended": {plain, replay.V10, 4, "is done, but its request row", func(main func(int) *journal.Entry) { main(4).Ended = journal.GUID{} }},
	"V10 a row ended twice": {plain, replay.V10, 6, "does not stand; it ended at entry 4", func(main func(int) *journal.Entry) {
		main(6).Ended = main(4).Ended
	}},
	"V10 a row cancelled from nowhere": {plain, replay.V10, 8, "cancelled by the close, but does not stand; it was never dispatched", func(main func(int) *journal.Entry) {
		main(8).CancelledByClose = []journal.GUID{{9}}
	}},
	"V10 a row updated from nowhere": {retried, replay.V10, 4, "updated, but does not stand", func(main func(int) *journal.Entry) {
		main(4).Updated = append(main(4).Updated, journal.Updated{GUID: journal.GUID{9}, Kind: journal.MessageRequest, Turn: 1, Attempt: 1})
	}},
	"V10 a row cancelled by no close": {plain, replay.V10, 3, "by an entry that closes nothing", func(main func(int) *journal.Entry) {
		main(3).CancelledByClose = []journal.GUID{main(3).Dispatched[0].GUID}
		main(4).Ended = journal.GUID{}
	}},
	"V11 a child that is not of its parent": {plain, replay.V11, 2, "does not derive from message", func(main func(int) *journal.Entry) {
		g := journal.GUID{1, 2, 3}
		main(2).Dispatched[0].GUID, main(3).GUID, main(3).Ended = g, g, g
	}},
	"V11 a response to another turn": {plain, replay.V11, 8, "response to turn 1", func(main func(int) *journal.Entry) {
		main(8).GUID[3] ^= 1
	}},
	"V12 an attempt skipped": {plain, replay.V12, 4, "turn 1, attempt 2; the row", func(main func(int) *journal.Entry) { main(4).Response.Attempt = 2 }},
	"V12 a turn skipped": {retried, replay.V12, 4, "to turn 3, attempt 2; the entry allows turn 2, attempt 2", func(main func(int) *journal.Entry) {
		main(4).Updated[0].Turn = 3
	}},
	"V12 a turn not raised": {retried, replay.V12, 4, "is done, but the turn of row", func(main func(int) *journal.Entry) { main(4).Updated = nil }},
	"V12 another chain bound": {line, replay.V12, 4, "binds the effect chain", func(main func(int) *journal.Entry) {
		main(4).Bound, main(6).Bound = main(6).Bound, main(4).Bound
	}},
	"V12 an effect behind the bound head": {line, replay.V12, 4, "and is not late", func(main func(int) *journal.Entry) {
		main(4).Bound.Head.Seq--
	}},
	"V16 marks out of order": {plain, replay.V16, 3, "not in the order", func(main func(int) *journal.Entry) {
		main(3).Marks[0], main(3).Marks[1] = main(3).Marks[1], main(3).Marks[0]
	}},
	"V16 a mark twice": {plain, replay.V16, 3, "not in the order", func(main func(int) *journal.Entry) {
		main(3).Marks = append(main(3).Marks, main(3).Marks[1])
	}},
	"V16 a reason for being held": {retried, replay.V16, 4, `reason for being held "lunch"`, func(main func(int) *journal.Entry) {
		main(4).Updated[0].Held = "lunch"
	}},
	"V16 a kind of message": {plain, replay.V16, 4, `unknown kind of message "letter"`, func(main func(int) *journal.Entry) {
		main(4).Dispatched = append(main(4).Dispatched, journal.Dispatched{GUID: journal.GUID{4}, Kind: "letter", Activity: "w1"})
	}},
}

// requireLies tells each lie, and requires that exactly its check finds it.
func requireLies(t *testing.T, sets ...map[string]lie) {
	for _, set := range sets {
		for name, c := range set {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				j := c.base()
				requireClean(t, j, true)
				requireClean(t, j, false)
				forged := j.Lie(func(entries []*journal.Entry) []*journal.Entry {
					c.change(func(seq int) *journal.Entry { return entries[seq-1] })
					return entries
				})
				requireOnly(t, forged.Verify(false), c.check, c.seq, c.words)
			})
		}
	}
}

// A forger who computes all hashes anew is found by the law that the lie breaks, and by no
// other check (2.5, J11).
func TestLiesFailExactlyTheirCheck(t *testing.T) {
	t.Parallel()
	requireLies(t, digitLies, closeLies)
}

// V11: the job's id is that of its key (C8).
func TestJobIDIsOfItsKey(t *testing.T) {
	t.Parallel()
	forged := plain().Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[0].Key = "jib"
		return entries
	})
	forged.Header.Key = "" // an input that does not know the key
	requireOnly(t, forged.Verify(false), replay.V11, 1, `key "jib"`)
}

// V8: entries of effects that contradict each other are found.
func TestEffectLies(t *testing.T) {
	t.Parallel()
	// Entries 9 to 12 are the first chain: started, completed, started, completed.
	for name, c := range map[string]struct {
		seq    int64
		words  string
		change func(entries []*journal.Entry) []*journal.Entry
	}{
		"no start": {1, "ends without a start", func(entries []*journal.Entry) []*journal.Entry {
			return shorten(slices.Delete(entries, 8, 9))
		}},
		"two results": {4, "has a result already", func(entries []*journal.Entry) []*journal.Entry {
			entries[11].Effect.Key, entries[11].Effect.Name = entries[9].Effect.Key, entries[9].Effect.Name
			return entries
		}},
		"a start after the result": {3, "has a result already", func(entries []*journal.Entry) []*journal.Entry {
			entries[10].Effect, entries[11].Effect = entries[8].Effect, entries[8].Effect
			return entries
		}},
		"another class": {2, "began as", func(entries []*journal.Entry) []*journal.Entry {
			entries[9].Effect.Class = "guarded"
			return entries
		}},
		"another kind": {2, "in a chain of effects", func(entries []*journal.Entry) []*journal.Entry {
			entries[9].Kind = journal.KindOperator
			return entries
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forged := line().Lie(c.change)
			requireOnly(t, forged.Verify(false), replay.V8, c.seq, c.words)
		})
	}
}

// shorten renumbers the chains of effects and what binds them.
func shorten(entries []*journal.Entry) []*journal.Entry {
	n := make(map[journal.GUID]int64)
	for _, e := range entries {
		if !e.Chain.IsZero() {
			n[e.Chain]++
			e.Seq = n[e.Chain]
		}
	}
	for _, e := range entries {
		if e.Bound != nil {
			e.Bound.Head.Seq = n[e.Bound.Chain]
		}
	}
	return entries
}

// V15, V7: what may come after the closing entry.
func TestLiesAfterTheClose(t *testing.T) {
	t.Parallel()
	after := func(change func(e *journal.Entry)) *replaytest.Journal {
		return plain().Lie(func(entries []*journal.Entry) []*journal.Entry {
			old := entries[3]
			e := &journal.Entry{
				Space: old.Space, Job: old.Job, Generation: old.Generation, Seq: 9, Kind: journal.KindLeg2,
				GUID: old.GUID, Activity: old.Activity, DAD: old.DAD,
			}
			change(e)
			return append(entries, e)
		})
	}
	requireOnly(t, after(func(*journal.Entry) {}).Verify(false), replay.V15, 9, "after the job was closed at entry 8")
	requireOnly(t, after(func(e *journal.Entry) {
		target := journal.JobID{8}
		e.Marks = []journal.Mark{journal.MarkAfterClose}
		e.Dispatched = []journal.Dispatched{{
			GUID: collation.InterruptGUID(e.GUID, target), Kind: journal.MessageInterrupt, DAD: ",0", Job: target,
		}}
	}).Verify(false), replay.V15, 9, "are dispatched after")
	requireOnly(t, after(func(e *journal.Entry) {
		e.Marks = []journal.Mark{journal.MarkClosed, journal.MarkAfterClose}
		e.Receipt = hundredB + tenB + oneB + 1
		e.Close = &journal.Close{State: journal.JobCompleted}
	}).Verify(false), replay.V7, 9, "closes the job again")
	require.Nil(t, after(func(e *journal.Entry) { e.Kind = journal.KindExpired }).Verify(false).First)
	early := plain().Lie(func(entries []*journal.Entry) []*journal.Entry {
		entries[2].Marks = append(entries[2].Marks, journal.MarkAfterClose)
		return entries
	})
	requireOnly(t, early.Verify(false), replay.V15, 3, "in a job that is open")
}
