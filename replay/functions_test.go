package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/replay"
)

// E12: what was cancelled may be named, and registered, again.
func TestNamedAgainIsNoFault(t *testing.T) {
	t.Parallel()
	e := made("moved").Entries()
	require.Equal(t, e[3].Waits, e[7].Waits)
	require.Equal(t, e[3].Dispatched[1].GUID, e[7].Dispatched[0].GUID)
}

// V11: the id of a function's child cannot be derived from its own journal, and the report says
// so. That of compensations can.
func TestJobsOfFunctions(t *testing.T) {
	t.Parallel()
	r := requireClean(t, made("invoice"), false)
	require.Contains(t, r.Result(replay.V11).Note, "the name under which a function started it")
}

// Without the rows of resolved waits, V13 says what it did not look at.
func TestResolvedWaitsThatWereNotRead(t *testing.T) {
	t.Parallel()
	j := made("rested")
	j.Stored.ResolvedWaits = nil
	require.Contains(t, requireClean(t, j, true).Result(replay.V13).Note, "are not in this input")
}
