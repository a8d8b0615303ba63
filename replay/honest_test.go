package replay_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/replay"
)

var modes = map[string]collation.Mode{
	"normal": {}, "fold": {Fold: true}, "stepwise": {Stepwise: true},
}

// requireClean fails unless every check is proved.
func requireClean(t require.TestingT, j *replaytest.Journal, tables bool) *replay.Report {
	r := j.Verify(tables)
	for _, c := range r.Checks {
		switch {
		case c.Check == replay.V9 && !tables:
			require.Equal(t, replay.NotProved, c.Status, "%s", c.Check)
		default:
			require.Equal(t, replay.Proved, c.Status, "%s: %v", c.Check, c.Violation)
		}
	}
	require.Nil(t, r.First)
	return r
}

// Honest journals of random worker trees, and of hooks, under random interleavings verify clean,
// at every point of their history, with their tables and without (2.5).
func TestHonestJournalsVerifyClean(t *testing.T) {
	t.Parallel()
	hooked, _ := options(recipes()["hooked"])
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				seed := rapid.Uint64().Draw(t, "seed")
				o := replaytest.Options{
					Mode: mode, Activities: rapid.IntRange(0, 8).Draw(t, "activities"),
					Choose:  rand.New(rand.NewPCG(seed, 1)).IntN,
					Trouble: rapid.Bool().Draw(t, "trouble"), Effects: rapid.Bool().Draw(t, "effects"),
					Steps: rapid.IntRange(0, 60).Draw(t, "steps"), // 0: to the end
				}
				if rapid.Bool().Draw(t, "hook") {
					o.Flow = hooked.Flow
				}
				j := replaytest.Honest(o)
				requireClean(t, j, true)
				requireClean(t, j, false)
			})
		})
	}
}

// Honest journals of flows with all types of activities, and of the jobs that they start,
// verify clean, too.
func TestHonestFamiliesVerifyClean(t *testing.T) {
	t.Parallel()
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				seed := rapid.Uint64().Draw(t, "seed")
				for _, j := range replaytest.Family(replaytest.Options{
					Every: true, Mode: mode, Activities: rapid.IntRange(1, 25).Draw(t, "activities"),
					Choose: rand.New(rand.NewPCG(seed, 2)).IntN, Functions: rapid.Bool().Draw(t, "functions"),
					Trouble: rapid.Bool().Draw(t, "trouble"), Effects: rapid.Bool().Draw(t, "effects"),
					Steps: rapid.IntRange(0, 400).Draw(t, "steps"),
				}) {
					requireClean(t, j, true)
					requireClean(t, j, false)
				}
			})
		})
	}
}

// C11: however plans are cut and joined, the last state is the same.
func TestModesGiveTheSameLedgers(t *testing.T) {
	t.Parallel()
	var first *replaytest.Journal
	for _, name := range []string{"normal", "fold", "stepwise"} {
		j := replaytest.Honest(replaytest.Options{Mode: modes[name], Activities: 5})
		r := requireClean(t, j, true)
		require.Zero(t, r.OpenCount, fmt.Sprint(r.Open))
		if first == nil {
			first = j
		}
		require.Equal(t, first.Stored.Instances, j.Stored.Instances, name)
		require.Equal(t, first.Stored.Receipts, j.Stored.Receipts, name)
	}
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
