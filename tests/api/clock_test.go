package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/view"
)

const nap = `
flow: nap
version: "1"
activities:
  start: {type: trigger}
  rest: {type: hook, sleep: 10m}
transitions:
  start: [rest]
`

// J5: how long a job still waits is told by the database's clock, also where that of this machine is
// another one.
func TestJ5ReasonsByTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	s := newSpace(t, nap)
	job := s.begin("nap", "n-1", map[string]any{})
	look := func() (now *view.Job, timed string) {
		now, err := s.Inspect(t.Context(), quipu.Job{ID: job.ID}, view.Want{Reasons: true})
		require.NoError(t, err)
		for _, r := range now.Reasons {
			if !r.Due.IsZero() {
				timed = r.Text
			}
		}
		return now, timed
	}
	require.Eventually(t, func() bool { _, timed := look(); return timed != "" }, devtest.Patience, 10*time.Millisecond)
	_, err := s.db().Exec(t.Context(), `CREATE OR REPLACE FUNCTION quipu_default.micros() RETURNS bigint LANGUAGE sql VOLATILE
		RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 7200000000`)
	require.NoError(t, err)
	now, timed := look()
	require.Contains(t, timed, "in 2 h ")
	space, err := s.Space(t.Context())
	require.NoError(t, err)
	require.True(t, space.Time.Before(now.Started))
}
