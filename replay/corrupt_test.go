package replay_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

// second makes every choice 1: 2 attempts, and two idempotent effects for each request,
// completed in time.
func second(n int) int { return min(1, n-1) }

// line is t → w1 → w2 → w3, all successful, with effects, in 8 entries: 1 created, 2 start, 3
// and 4 w1, 5 and 6 w2, 7 and 8 w3, which closes.
func line() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Choose: second, Activities: 3, Chain: true, Effects: true})
}

// plain is line without effects.
func plain() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Choose: second, Activities: 3, Chain: true})
}

// retried is plain with a failed attempt of w1: entry 4 is its pending response, 5
// the terminal one.
func retried() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{
		Choose: second, Activities: 3, Chain: true,
		Respond: func(activity string, turn int) *journal.Response {
			if activity != "w1" || turn > 1 {
				return nil
			}
			return &journal.Response{Kind: journal.ResponseFailedAttempt, Code: 500, Error: &journal.Failure{Class: "error", Message: "no"}}
		},
	})
}

// stepped is plain with a commit at every mark: 3 and 4 are the Leg1 of w1.
func stepped() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Choose: second, Activities: 3, Chain: true, Mode: modes["stepwise"]})
}

// halfway is line after 5 entries: the request of w2 is open.
func halfway() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{Choose: second, Activities: 3, Chain: true, Effects: true, Steps: 4})
}

// requireOnly fails unless exactly this check is violated, first at this entry, in these words.
// V17 may be, too: with the flow it finds much of what the others find without it.
func requireOnly(t *testing.T, r *replay.Report, c replay.Check, seq int64, words string) {
	t.Helper()
	for _, x := range r.Checks {
		if x.Check != c && x.Check != replay.V17 {
			require.NotEqual(t, replay.Violated, x.Status, "%v", x.Violation)
		}
	}
	v := r.Result(c).Violation
	require.NotNil(t, v, "%s is not violated", c)
	require.Equal(t, seq, v.Seq, v.String())
	require.Contains(t, v.Message, words)
	if r.First.Check != replay.V17 {
		require.Equal(t, v, r.First)
	}
}

// rawCases change only stored records.
var rawCases = map[string]struct {
	check  replay.Check
	seq    int64
	words  string
	change func(j *replaytest.Journal)
}{
	"V1 an entry deleted": {replay.V1, 5, "entry 5 follows entry 3: 1 missing", func(j *replaytest.Journal) {
		j.Records = slices.Delete(j.Records, 3, 4)
	}},
	"V1 the first entry deleted": {replay.V1, 2, "entry 2 follows entry 0", func(j *replaytest.Journal) {
		j.Records = slices.Delete(j.Records, 0, 1)
	}},
	"V1 an entry twice": {replay.V1, 4, "entry 4 again", func(j *replaytest.Journal) {
		j.Records = slices.Insert(j.Records, 4, j.Records[3])
	}},
	"V1 two entries swapped": {replay.V1, 5, "entry 5 follows entry 3", func(j *replaytest.Journal) {
		j.Records[3], j.Records[4] = j.Records[4], j.Records[3]
	}},
	"V1 an effect deleted": {replay.V1, 3, "entry 3 follows entry 1", func(j *replaytest.Journal) {
		j.Records = slices.Delete(j.Records, 9, 10)
	}},
	"V1 another key":  {replay.V1, 1, `key is "job"`, func(j *replaytest.Journal) { j.Header.Key = "other" }},
	"V1 another flow": {replay.V1, 1, "digest", func(j *replaytest.Journal) { j.Header.Flow[3] ^= 1 }},
	"V2 a byte of a body": {replay.V2, 4, "its body and predecessor give", func(j *replaytest.Journal) {
		b := j.Records[3].Body
		copy(b[bytes.Index(b, []byte(`"t":17`)):], `"t":18`)
	}},
	"V2 a hash": {replay.V2, 4, "its body and predecessor give", func(j *replaytest.Journal) { j.Records[3].Hash[7] ^= 4 }},
	"V2 a space in a body, hashes anew": {replay.V2, 4, "canonical", func(j *replaytest.Journal) {
		j.Records[3].Body = bytes.Replace(j.Records[3].Body, []byte(`":`), []byte(`": `), 1)
		j.Reseal()
	}},
	"V3 the last entry deleted": {replay.V3, 7, "ends at entry 7, the stored head says entry 8", func(j *replaytest.Journal) {
		j.Records = slices.Delete(j.Records, 7, 8)
	}},
	"V3 another head": {replay.V3, 8, "the stored head says", func(j *replaytest.Journal) { j.Header.Head.Hash[0] ^= 1 }},
	"V3 a chain of effects cut": {replay.V3, 3, "binds 4 entries", func(j *replaytest.Journal) {
		j.Records = j.Records[:len(j.Records)-1]
	}},
	"V3 a chain of effects gone": {replay.V3, 0, "none is here", func(j *replaytest.Journal) {
		j.Records = j.Records[:len(j.Records)-4]
	}},
	"V16 a version": {replay.V16, 4, "unknown entry version", func(j *replaytest.Journal) {
		j.Records[3].Body = bytes.Replace(j.Records[3].Body, []byte(`"v":3`), []byte(`"v":4`), 1)
		j.Reseal()
	}},
	"V16 a kind": {replay.V16, 4, "unknown entry kind", func(j *replaytest.Journal) {
		j.Records[3].Body = bytes.Replace(j.Records[3].Body, []byte(`"as":"2"`), []byte(`"as":"3"`), 1)
		j.Reseal()
	}},
	"V16 a mark": {replay.V16, 4, "an unknown mark", func(j *replaytest.Journal) {
		j.Records[3].Body = bytes.Replace(j.Records[3].Body, []byte(`"do":"ewc"`), []byte(`"do":"ewz"`), 1)
		j.Reseal()
	}},
	"V16 an entry of the format before": {replay.V16, 4, "unknown entry version 1: this build reads version 3", func(j *replaytest.Journal) {
		j.Records[3].Body = []byte(`{"act":"w1","dad":",0,0","gen":1,"k":"leg2","leg":2,"sp":"test","v":1}`)
		j.Reseal()
	}},
	"V16 a field": {replay.V16, 4, "unknown entry field", func(j *replaytest.Journal) {
		j.Records[3].Body = bytes.Replace(j.Records[3].Body, []byte(`"v":3`), []byte(`"v":3,"vv":1`), 1)
		j.Reseal()
	}},
}

// Each change of stored bytes is found at its entry by exactly its check (2.5, J11). Checks
// that became impossible say so.
func TestCorruptBytesFailExactlyTheirCheck(t *testing.T) {
	t.Parallel()
	for name, c := range rawCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := line().Clone()
			c.change(j)
			requireOnly(t, j.Verify(true), c.check, c.seq, c.words)
			requireOnly(t, j.Verify(false), c.check, c.seq, c.words)
		})
	}
}

// After a gap the laws over the state do not guess: they are not proved. The hash chain is
// still checked.
func TestBlindSpotIsSaid(t *testing.T) {
	t.Parallel()
	j := plain().Clone()
	j.Records = slices.Delete(j.Records, 3, 4)
	j.Records[5].Hash[0] ^= 1
	r := j.Verify(true)
	require.Equal(t, int64(7), r.Result(replay.V2).Violation.Seq)
	for _, c := range []replay.Check{replay.V4, replay.V5, replay.V6, replay.V7, replay.V10, replay.V11, replay.V12, replay.V15} {
		require.Equal(t, replay.NotProved, r.Result(c).Status, "%s", c)
		require.Contains(t, r.Result(c).Note, "missing before entry 5")
	}
}

// receiptCases change the one receipt of midstep.
var receiptCases = map[string]struct {
	words  string
	change func(all map[journal.GUID]replay.StoredReceipt, g journal.GUID)
}{
	"a step": {"position 5 (step 1): 0, not 1", func(all map[journal.GUID]replay.StoredReceipt, g journal.GUID) {
		all[g] = replay.StoredReceipt{Ledger: all[g].Ledger - 10_000_000_000, Verdict: all[g].Verdict}
	}},
	"deleted": {"no receipt of message", func(all map[journal.GUID]replay.StoredReceipt, g journal.GUID) { delete(all, g) }},
	"a verdict": {"stored verdict", func(all map[journal.GUID]replay.StoredReceipt, g journal.GUID) {
		all[g] = replay.StoredReceipt{Ledger: all[g].Ledger, Verdict: journal.VerdictStale}
	}},
}

// V4, W12: the receipt of a message with open steps exists, and is compared with the entries.
func TestCorruptReceipts(t *testing.T) {
	t.Parallel()
	for name, c := range receiptCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := replaytest.Honest(replaytest.Options{
				Choose: second, Activities: 3, Chain: true, Mode: collation.Mode{Stepwise: true}, Steps: 5,
			})
			requireClean(t, j, true)
			require.Len(t, j.Stored.Receipts, 1)
			for g := range j.Stored.Receipts {
				c.change(j.Stored.Receipts, g)
			}
			requireOnly(t, j.Verify(true), replay.V4, 0, c.words)
		})
	}
}

// A row that is stored but not dispatched, a digit that should not be there: the tables are
// compared with the entries (J1).
func TestCorruptTablesFailExactlyTheirCheck(t *testing.T) {
	t.Parallel()
	for name, c := range tableCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireTampered(t, halfway(), c.change, c.check, c.seq, c.words)
		})
	}
}

// requireTampered requires that exactly this check finds a change of the tables, and that the
// entries alone are still clean.
func requireTampered(t *testing.T, j *replaytest.Journal, change func(s *replay.Stored), c replay.Check, seq int64, words string) {
	t.Helper()
	requireClean(t, j, true)
	change(j.Stored)
	requireOnly(t, j.Verify(true), c, seq, words)
	require.Nil(t, j.Verify(false).First)
}
