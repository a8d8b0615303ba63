package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
)

// W12: the entries of ten activities, one after the other and side by side, each written by a
// process that loads the job anew, contain only what does not follow.
func TestEntriesAreLean(t *testing.T) {
	t.Parallel()
	mode := collation.Mode{Fold: true, Writer: "worker-7.example/4711", Build: "f7fce57"}
	for name, o := range map[string]replaytest.Options{
		"one after the other": {Activities: 10, Chain: true, Mode: mode, Input: `{}`},
		"side by side":        {Activities: 10, Mode: mode, Input: `{}`},
	} {
		j := replaytest.Honest(o)
		require.Len(t, j.Records, 12)
		requireClean(t, j, true)
		total := 0
		for _, r := range j.Records {
			total += len(r.Body)
		}
		by := len(`"by":{"b":"","w":""},`) + len(mode.Writer) + len(mode.Build)
		require.Less(t, total, 3100, name)
		require.Less(t, total-11*by, 2500, "%s: if all are by one writer", name)
	}
}

// W12: every request names the sum of its input.
func TestEveryInputHasItsSum(t *testing.T) {
	t.Parallel()
	input := journal.SumOf([]byte(`{}`))
	for _, e := range made("plain").Entries() {
		for _, d := range e.Dispatched {
			require.Equal(t, d.Kind == journal.MessageRequest, !d.Input.IsZero())
			if d.Kind == journal.MessageRequest {
				require.Equal(t, input, d.Input)
			}
		}
	}
	for _, e := range made("listed").Entries() {
		if x := e.Elements; x != nil {
			require.Equal(t, x.Count, x.Inputs.Len())
			require.False(t, x.Inputs.At(0).IsZero())
			require.True(t, x.Inputs.At(x.Count).IsZero())
		}
	}
}

// W12: the parent's journal has the sum of its child's input.
func TestInputsOfChildrenHaveTheirSums(t *testing.T) {
	t.Parallel()
	o, _ := options(recipes()["awaited"])
	family := replaytest.Family(o)
	given := make(map[journal.JobID]journal.Sum)
	for _, e := range family[0].Entries() {
		for _, d := range e.Dispatched {
			if d.Kind == journal.MessageStart && !d.Job.IsZero() {
				given[d.Job] = d.Input
			}
		}
	}
	children := 0
	for _, j := range family[1:] {
		first := j.Entries()[0]
		require.False(t, given[first.Job].IsZero())
		require.Equal(t, journal.SumOf(first.Input), given[first.Job])
		children++
	}
	require.NotZero(t, children)
}
