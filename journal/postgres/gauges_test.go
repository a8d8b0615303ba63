package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// O4: closed jobs are estimated from a part of their table once it is large, and the estimate is
// the same each time.
func TestO4ClosedJobsAreEstimated(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	v := must(s.Job(t.Context(), id))(t)
	require.NoError(t, s.run(t, "INSERT INTO flows (name, version, digest, definition, active, deployed, scheduled) SELECT flow_name, flow_version, flow_digest, '{}', true, 0, 0 FROM jobs"))
	const jobs = 40_000
	require.NoError(t, s.run(t, `
		INSERT INTO jobs (id, n, key, generation, flow_name, flow_version, flow_digest, trigger, state, semaphore, head_seq, head_hash,
			closed_seq, tasks_seq, started, closed, trace)
		SELECT gen_random_uuid(), j.n + 1000 + i, 'c' || i, 1, flow_name, flow_version, flow_digest, trigger,
			CASE WHEN i % 4 = 0 THEN 'failed' ELSE 'completed' END, 0, 1, head_hash, 1, 1, started, started, ''
		FROM jobs j, generate_series(1, 40000) AS i WHERE j.key = 'k'`))
	require.Greater(t, s.rows(t, "generate_series(1, pg_relation_size('jobs') / 8192)"), 4*store.MaxSampledPages, "most pages are not looked at")
	g := must(s.Gauges(t.Context()))(t)
	of := func(state journal.JobState) float64 {
		return float64(g.Closed[store.JobsOf{Flow: v.Flow.Name, State: state}])
	}
	require.InEpsilon(t, jobs*3/4, of(journal.JobCompleted), 0.25)
	require.InEpsilon(t, jobs/4, of(journal.JobFailed), 0.25)
	require.EqualValues(t, 1, g.Jobs[store.JobsOf{Flow: v.Flow.Name, State: journal.JobOpen}])
	again := must(s.Gauges(t.Context()))(t)
	require.Equal(t, g.Closed, again.Closed)
}
