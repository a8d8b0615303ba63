package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

// O2: every job that ends is given to one sender, also one whose commit comes later than its time,
// one that a dead sender did not mark, and one that could not be delivered. What closed long ago is
// left out.
func TestTracesOfAllEndedJobsAreSent(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	keys := make([]string, 2*tracePage+5)
	for i := range keys {
		keys[i] = fmt.Sprintf("job-%d", i)
	}
	jobs := startJobs(t, s, keys...)
	open := jobs[:5]
	closed := func(ids []journal.JobID, age string) {
		for i, id := range ids {
			require.NoError(t, s.run(t, fmt.Sprintf(
				"UPDATE jobs SET state = 'completed', closed_seq = 1, tasks_seq = 1, closed = micros() - (%s) + %d WHERE id = '%s'", age, i, id)))
		}
	}
	sent := map[journal.JobID]int{}
	var order []journal.JobID
	take := func(ids []journal.JobID) error {
		require.LessOrEqual(t, len(ids), tracePage)
		for _, id := range ids {
			sent[id]++
		}
		order = append(order, ids...)
		return nil
	}
	one, two := s.Traces(), s.Traces()
	require.NoError(t, one.Send(t.Context(), take)) // makes the mark
	closed(jobs[5:], "0")
	away := errors.New("the collector is away")
	require.ErrorIs(t, one.Send(t.Context(), func([]journal.JobID) error { return away }), away)
	require.NoError(t, one.Send(t.Context(), take))
	require.NoError(t, one.Send(t.Context(), take))
	require.Equal(t, jobs[5:], order, "each once, first what closed first")

	closed(open[:1], "30000000") // committed 30 s after its time
	require.NoError(t, one.Send(t.Context(), take))
	require.Equal(t, 1, sent[open[0]])

	closed(open[1:2], "0")
	dies := errors.New("it dies")
	require.ErrorIs(t, one.Send(t.Context(), func([]journal.JobID) error {
		require.NoError(t, two.Send(t.Context(), func([]journal.JobID) error { return errors.New("two send at once") }))
		return dies
	}), dies)
	require.NoError(t, two.Send(t.Context(), take))
	require.Equal(t, 1, sent[open[1]], "another process sends what a dead one did not")

	require.NoError(t, s.run(t, fmt.Sprintf("UPDATE traces SET upto = micros() - %d", 3*TraceAge.Microseconds())))
	closed(open[2:3], fmt.Sprint(2*TraceAge.Microseconds()))
	closed(open[3:4], "3600000000")
	require.NoError(t, two.Send(t.Context(), take))
	require.Zero(t, sent[open[2]])
	require.Equal(t, 1, sent[open[3]])
	require.Zero(t, sent[open[4]], "it is open")
}
