package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/journal"
)

// Deep, long and wide graphs are folded, and the count of what is left out is complete.
func TestGraphIsBounded(t *testing.T) {
	t.Parallel()
	var activities, transitions strings.Builder
	const deep, long = 30, 400
	for i := range deep { // each has two branches, one of which goes on
		fmt.Fprintf(&activities, "  d%d: {type: hook}\n  e%d: {type: hook}\n", i, i)
		fmt.Fprintf(&transitions, "  d%d: [e%d, d%d]\n", i, i, i+1)
	}
	fmt.Fprintf(&activities, "  d%d: {type: hook}\n", deep)
	for i := range long {
		fmt.Fprintf(&activities, "  l%d: {type: hook}\n", i)
		if i > 0 {
			fmt.Fprintf(&transitions, "  l%d: [l%d]\n", i-1, i)
		}
	}
	w := worldOf(t, []byte("flow: big\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n"+activities.String()+
		"transitions:\n  start: [d0, l0]\n"+transitions.String()))
	total := 1 + 2*deep + 1 + long
	for lines, want := range map[int]int{0: explain.MaxLines, 50: 50, 10_000: -1} {
		text := explain.Graph(w.job.Flow, explain.Survey(&w.job), explain.Style{Lines: lines})
		drawn := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		last := drawn[len(drawn)-1]
		var more int
		_, err := fmt.Sscanf(last, "… and %d more activities", &more)
		require.NoError(t, err, last)
		require.Equal(t, total, len(drawn)-1+more)
		if want > 0 {
			require.Len(t, drawn, want+1)
		}
		for _, l := range drawn {
			require.Less(t, len([]rune(l)), 120)
		}
	}
	w.job.Flow = nil
	require.Empty(t, explain.Graph(w.job.Flow, explain.Survey(&w.job), explain.Style{}))
}

// The state of an activity is coloured on request.
func TestGraphIsColoured(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything)
	w.instance("charge", ",0,0", 201100000000003).Code = 503
	require.Contains(t, explain.Graph(w.job.Flow, explain.Survey(&w.job), explain.Style{Color: true}), "\x1b[31mfailed\x1b[0m, code 503")
}

// The child is named whose failure a durable function passed on.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	outcome := func(child journal.JobID, code int, class, message string) *journal.Entry {
		return &journal.Entry{Response: &journal.Response{
			Child: child, Request: leg1, Code: code, Error: &journal.Failure{Class: class, Message: message},
		}}
	}
	outcomes := []*journal.Entry{outcome(self, 402, "money", "none"), outcome(other, 402, "money", "no money")}
	said := &journal.Failure{Message: `book: child "pay" of flow invoice ended with error 402 (money): no money`}
	require.Equal(t, other, explain.PassedOn(said, outcomes))
	require.Zero(t, explain.PassedOn(said, outcomes[:1]), "the function dealt with this one")
	require.Zero(t, explain.PassedOn(nil, outcomes))
}
