package replay_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
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

func instance(activity, dad string) collation.InstanceKey {
	return collation.InstanceKey{Activity: activity, DAD: collation.DAD(dad)}
}

// J10: the state at any seq, with the digits of the worked ledgers (1.12).
func TestTimeTravel(t *testing.T) {
	t.Parallel()
	j := made("retried")
	w1 := instance("w1", ",0,0")
	for _, c := range []struct {
		at      int
		ledger  string
		turn    int
		attempt int
		state   journal.JobState
		open    int
		receipt int
	}{
		{1, "000000000000000", 0, 0, journal.JobOpen, 1, 1},
		{2, "000000000000000", 0, 0, journal.JobOpen, 1, 1},
		{3, "001100000000000", 1, 1, journal.JobOpen, 1, 1},
		{4, "001100000000001", 2, 2, journal.JobOpen, 1, 2},
		{5, "201100000000002", 0, 0, journal.JobOpen, 1, 3},
		{9, "201100000000002", 0, 0, journal.JobCompleted, 0, 5},
	} {
		job := apply(t, j, c.at)
		var ledger collation.ActivityLedger
		if i := job.Instances[w1]; i != nil {
			ledger = i.Ledger
		}
		require.Equal(t, c.ledger, ledger.String(), "at %d", c.at)
		require.Equal(t, c.state, job.State, "at %d", c.at)
		require.Len(t, job.Obligations, c.open, "at %d", c.at)
		require.EqualValues(t, c.open, job.Semaphore, "at %d", c.at)
		require.Len(t, job.Receipts, c.receipt, "at %d", c.at)
		turn, attempt := 0, 0
		for _, row := range job.Rows {
			if row.Activity == "w1" {
				turn, attempt = row.Turn, row.Attempt
			}
		}
		require.Equal(t, []int{c.turn, c.attempt}, []int{turn, attempt}, "at %d", c.at)
		require.Equal(t, j.Records[c.at-1].Hash, job.At.Hash)
	}
	end := apply(t, j, 9)
	require.Equal(t, int64(9), end.ClosedAt)
	require.True(t, end.Tasks)
	require.Equal(t, int64(5), end.Instances[w1].ResultSeq)
	require.Equal(t, 200, end.Instances[w1].Code)
	require.Nil(t, end.Instances[w1].Output, "outputs are kept on request only")
}

// J10: outputs on request, in every mode.
func TestOutputs(t *testing.T) {
	t.Parallel()
	for name, mode := range modes {
		j := replaytest.Honest(replaytest.Options{Mode: mode, Activities: 2, Chain: true})
		job := apply(t, j, len(j.Records), replay.KeepOutputs)
		require.JSONEq(t, `{"n":1}`, string(job.Instances[instance("t", ",0")].Output), name)
		require.JSONEq(t, `{"turn":1}`, string(job.Instances[instance("w2", ",0,0,0")].Output), name)
	}
}

// J10: effects are cached under their keys.
func TestEffectsAreRebuilt(t *testing.T) {
	t.Parallel()
	j := made("line")
	job := apply(t, j, len(j.Records))
	require.Len(t, job.Effects, 6)
	require.Len(t, job.Chains, 3)
	for _, s := range j.Stored.Effects {
		require.Equal(t, replay.EffectCompleted, job.Effects[s.Key].State)
		require.Equal(t, s.Result, job.Effects[s.Key].Result)
	}
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
