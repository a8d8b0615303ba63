package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
	"github.com/quipu-journal/quipu/journal"
)

// O7: many jobs that failed are resumed, each once, and the log has how many that are in a second.
func TestO7BulkResumesMany(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	f, err := flow.Parse("declined.yaml", []byte(`
flow: declined
version: "1"
activities:
  start: {type: trigger}
  step: {type: worker, topic: fail, input: {code: 422, message: declined}, retry: {attempts: 1}}
transitions: {start: [step]}
`))
	require.NoError(t, err)
	require.NoError(t, w.rt.Deploy(t.Context(), f))
	jobs := soak.Times(100, 1000)
	all := make([]quipu.StartRequest, jobs)
	for n := range all {
		all[n] = quipu.StartRequest{Flow: "declined", Key: fmt.Sprint("declined-", n)}
	}
	for part := range slices.Chunk(all, quipu.MaxStarts) {
		_, err = w.rt.StartMany(t.Context(), part)
		require.NoError(t, err)
	}
	failed := func() int64 {
		n, err := w.rt.CountJobs(t.Context(), quipu.JobFilter{Flow: "declined"})
		require.NoError(t, err)
		return n.ByState[journal.JobFailed]
	}
	require.Eventually(t, func() bool { return failed() == int64(jobs) }, patience, 50*time.Millisecond)
	began := time.Now()
	until := began.Format(time.RFC3339Nano) // later generations are not acted on
	a := w.post("/bulk", url.Values{"flow": {"declined"}, "to": {until}, "count": {fmt.Sprint(jobs)}, "act": {"resume"}, "reason": {"once more"}})
	took := time.Since(began)
	t.Logf("%d jobs were resumed in %v: %.0f in a second", jobs, took, float64(jobs)/took.Seconds())
	require.Equal(t, http.StatusOK, a.StatusCode)
	has(t, a.Body, fmt.Sprintf("Finished: %d of %d jobs looked at, %d done, 0 failed, 0 had nothing to do", jobs, jobs, jobs))
	for _, r := range all {
		j, err := w.rt.Job(t.Context(), quipu.Job{Key: r.Key})
		require.NoError(t, err)
		require.Equal(t, int64(2), j.Generation, r.Key)
	}
}
