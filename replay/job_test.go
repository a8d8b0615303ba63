package replay_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

func apply(t *testing.T, j *replaytest.Journal, upTo int, options ...replay.Option) *replay.Job {
	t.Helper()
	job := replay.New(j.Header, options...)
	for _, rec := range j.Records[:upTo] {
		require.NoError(t, job.Apply(rec))
	}
	return job
}

// V14: the digest is that of the state, not of the way to it. Chains in another order give the
// same digest; any other entry gives another.
func TestDigest(t *testing.T) {
	t.Parallel()
	j := replaytest.Honest(replaytest.Options{
		Activities: 6, Effects: true, Trouble: true, Choose: rand.New(rand.NewPCG(3, 3)).IntN,
	})
	first := apply(t, j, len(j.Records)).Digest()
	other := replay.New(j.Header)
	main := 0
	for _, rec := range j.Records {
		if !rec.Chain.IsZero() {
			require.NoError(t, other.Apply(rec))
		} else {
			main++
		}
	}
	seen := make(map[journal.Digest]bool)
	for _, rec := range j.Records[:main] {
		require.NoError(t, other.Apply(rec))
		require.False(t, seen[other.Digest()])
		seen[other.Digest()] = true
	}
	require.Equal(t, first, other.Digest())
	require.Equal(t, first, j.Verify(true).Digest)
}

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	j := made("plain")
	job := replay.New(j.Header)
	require.ErrorContains(t, job.Apply(j.Records[1]), "does not follow entry 0")
	require.NoError(t, job.Apply(j.Records[0]))
	require.ErrorContains(t, job.Apply(j.Records[0]), "does not follow entry 1")
	broken := j.Records[1]
	broken.Body = broken.Body[:20]
	require.ErrorIs(t, job.Apply(broken), journal.ErrNotCanonical)
	foreign := replay.New(replay.Header{Job: journal.JobID{1}})
	require.ErrorContains(t, foreign.Apply(j.Records[0]), "does not follow")
}

// A read error gives no verdict.
func TestVerifyReadError(t *testing.T) {
	t.Parallel()
	j := made("plain")
	lost := errors.New("connection lost")
	r, err := replay.Verify(j.Header, j.Stored, j.Attachments, func(yield func(journal.Record, error) bool) {
		_ = yield(j.Records[0], nil) && yield(journal.Record{}, lost)
	})
	require.Nil(t, r)
	require.ErrorIs(t, err, lost)
	require.ErrorContains(t, err, "after entry 1")
}

// J7: of an expired job only the tombstone is left: nothing is proved and nothing is violated.
// For an open job without entries something is.
func TestTombstone(t *testing.T) {
	t.Parallel()
	j := made("plain")
	j.Records = nil
	j.Stored = &replay.Stored{State: journal.JobExpired}
	r := j.Verify(true)
	require.Nil(t, r.First)
	require.Equal(t, replay.NotProved, r.Result(replay.V4).Status)
	require.Equal(t, "only the tombstone is left", r.Result(replay.V1).Note)
	requireOnly(t, j.Verify(false), replay.V3, 0, "no entry is here")
	j.Header.Head = journal.Head{}
	requireOnly(t, j.Verify(false), replay.V1, 0, "has no entries")
}

// After a gap the laws over the state do not guess: they are not proved. The hash chain is
// still checked.
func TestBlindSpotIsSaid(t *testing.T) {
	t.Parallel()
	j := made("plain").Clone()
	j.Records = slices.Delete(j.Records, 3, 4)
	j.Records[5].Hash[0] ^= 1
	r := j.Verify(true)
	require.Equal(t, int64(7), r.Result(replay.V2).Violation.Seq)
	for _, c := range []replay.Check{
		replay.V4, replay.V5, replay.V6, replay.V7, replay.V10, replay.V11, replay.V12, replay.V15,
	} {
		require.Equal(t, replay.NotProved, r.Result(c).Status, "%s", c)
		require.Contains(t, r.Result(c).Note, "missing before entry 5")
	}
}

// E12: what was cancelled may be named, and registered, again.
func TestNamedAgainIsNoFault(t *testing.T) {
	t.Parallel()
	e := made("moved").Entries()
	require.Equal(t, e[3].Waits, e[7].Waits)
	require.Equal(t, e[3].Dispatched[1].GUID, e[7].Dispatched[0].GUID)
}

// Without the rows of resolved waits, V13 says what it did not look at.
func TestResolvedWaitsThatWereNotRead(t *testing.T) {
	t.Parallel()
	j := made("rested")
	j.Stored.ResolvedWaits = nil
	require.Contains(t, requireClean(t, j, true).Result(replay.V13).Note, "are not in this input")
}

// Every difference of the tables is listed, apart from what the journal breaks.
func TestDifferencesAreListed(t *testing.T) {
	t.Parallel()
	j := made("halfway")
	j.Stored.Semaphore = 9
	alter(j.Stored.Rows, isRequest, func(r *collation.Row) { r.Turn, r.Attempt = 5, 6 })
	r := j.Verify(true)
	require.Nil(t, r.Broken)
	var all [][2]string
	for _, d := range r.Differences {
		all = append(all, [2]string{d.Table, d.Column})
	}
	require.Equal(t, [][2]string{{"jobs", "semaphore"}, {"dispatches", "turn"}, {"dispatches", "attempt"}}, all)
	require.Equal(t, "9", r.Differences[0].Stored)
	require.Zero(t, r.Unlisted)
}
