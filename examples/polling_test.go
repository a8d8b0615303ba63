package examples_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

// polls plays the loop against a service whose n-th answer, from 1, is answer(n): the body of a
// success, or "" for an error.
func polls(t *testing.T, answer func(n int) (body string), scenario func(t testing.TB, job *quiputest.Job)) {
	t.Helper()
	t.Parallel()
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.DeployFiles("polling/*.yaml")
		asked := 0
		w.Serve(func(reg *workers.Registry) {
			workers.HandleRaw(reg, "http", func(context.Context, json.RawMessage) (json.RawMessage, error) {
				if asked++; answer(asked) == "" {
					return nil, workers.Fail(503, "as told")
				}
				return json.RawMessage(`{"status": 200, "body": ` + answer(asked) + `}`), nil
			})
			workers.HandleRaw(reg, "echo", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
				return in, nil
			})
		})
		scenario(t, w.Start("polling", "settle-1", map[string]string{"order": "order-1", "url": "http://service", "every": "1h"}))
	})
}

// The loop continues after an error, an empty list and other charges, and ends with the charge.
// Every question has its own address.
func TestPollsUntilItIsThere(t *testing.T) {
	answers := []string{``, `null`, `[{"order": "another", "amount": 1}]`, `[{"order": "another", "amount": 1}, {"order": "order-1", "amount": 12.5}]`}
	polls(t, func(n int) string { return answers[n-1] }, func(t testing.TB, job *quiputest.Job) {
		began := time.Now()
		gives(t, job, `{"charge": {"order": "order-1", "amount": 12.5}, "asked": 4}`)
		require.InDelta(t, 3, time.Since(began).Hours(), 0.01)
		require.Equal(t, []string{",0,0,0", ",0,1,0", ",0,2,0", ",0,3,0"}, addresses(job, "ask"))
		_, digits := ledgers(job, "poll")
		require.Equal(t, []string{"001100000000004"}, digits, "its own pass and three of the cycle (1.12)")
	})
}

// An answer that never comes ends with an error that names the limit.
func TestGivesUpAfterMax(t *testing.T) {
	polls(t, func(int) string { return `[]` }, func(t testing.TB, job *quiputest.Job) {
		cause := job.Fails(500)
		require.Equal(t, "cycle", cause.Class)
		require.Contains(t, cause.Message, "`max` is 100")
		require.Len(t, addresses(job, "ask"), 101)
	})
}
