package replay_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
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
	r, err := replay.Verify(j.Header, j.Stored, j.Beside, func(yield func(journal.Record, error) bool) {
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

// V7: completion tasks that have not run are open, not wrong.
func TestMissingTasksAreOpen(t *testing.T) {
	t.Parallel()
	steps := 0
	for n := 1; ; n++ {
		j := replaytest.Honest(replaytest.Options{Mode: modes["stepwise"], Activities: 1, Steps: n})
		r := requireClean(t, j, true)
		if r.State == journal.JobCompleted {
			require.Equal(t, 2, r.OpenCount)
			require.Equal(t, "tasks", r.Open[0].What)
			steps = n
			break
		}
	}
	j := replaytest.Honest(replaytest.Options{Mode: modes["stepwise"], Activities: 1, Steps: steps + 1})
	require.Zero(t, requireClean(t, j, true).OpenCount)
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
	for _, c := range []replay.Check{replay.V4, replay.V5, replay.V6, replay.V7, replay.V10, replay.V11, replay.V12, replay.V15} {
		require.Equal(t, replay.NotProved, r.Result(c).Status, "%s", c)
		require.Contains(t, r.Result(c).Note, "missing before entry 5")
	}
}

// A stale message leaves a receipt of value 0 and ends its row, also after the close (1.7).
func TestStale(t *testing.T) {
	t.Parallel()
	r := requireClean(t, made("staled"), false)
	require.Zero(t, r.OpenCount)
	require.Equal(t, "1 interrupts came from outside", r.Result(replay.V11).Note)
}

// C15, E10: a close by failure ends everything that is open; what an operator retries goes on.
func TestHowFixturesEnd(t *testing.T) {
	t.Parallel()
	for state, j := range map[journal.JobState]*replaytest.Journal{journal.JobFailed: made("failing"), journal.JobCompleted: made("held")} {
		r := requireClean(t, j, true)
		require.Equal(t, state, r.State)
		require.Zero(t, r.OpenCount)
	}
}
