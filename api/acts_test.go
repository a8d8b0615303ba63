package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// O11: an operator forks a job by its id, and both journals have who and why. O12: what the runtime
// refuses the API refuses, with the same error for a client in Go.
func TestO11ForkSaysWho(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.jobs()
	of := func(key string) journal.JobID {
		job, err := w.rt.Find(t.Context(), key)
		require.NoError(t, err)
		return job.ID
	}
	h1 := of("h1")
	path := "/jobs/" + h1.String() + "/fork"
	w.refused(w.ask(access.Client, http.MethodPost, path, `{"at": 1, "key": "h2"}`), http.StatusForbidden, access.CodeForbidden)
	p := w.refused(w.ask(access.Operator, http.MethodPost, "/jobs/h1/fork", `{"at": 1, "key": "h2"}`), http.StatusBadRequest, api.CodeMalformed)
	require.Contains(t, p.Detail, "a fork names a job by its id")
	none := "/jobs/" + (journal.JobID{1}).String() + "/fork"
	w.refused(w.ask(access.Operator, http.MethodPost, none, `{"at": 1, "key": "h2"}`), http.StatusNotFound, api.CodeNotFound)
	for body, says := range map[string]string{
		`{"key": "h2"}`:            "there is no entry 0: its journal has the entries 1 to ",
		`{"at": 99, "key": "h2"}`:  "there is no entry 99",
		`{"at": 1}`:                "give the new job a key of its own",
		`{"at": 1, "key": "h1"}`:   "take another one",
		`{"at": -1, "key": "neg"}`: "there is no entry -1",
	} {
		p := w.refused(w.ask(access.Operator, http.MethodPost, path, body), http.StatusConflict, api.CodeFork)
		require.Contains(t, p.Detail, says)
	}
	w.refused(w.ask(access.Operator, http.MethodPost, path, `{"at": 1, "key": "a\tb"}`), http.StatusUnprocessableEntity, api.CodeKey)

	c := w.client(access.Operator)
	done, err := c.Fork(t.Context(), h1, 1, "h2", "with the mended handler")
	require.NoError(t, err)
	require.Equal(t, api.Forked{Key: "h2", Job: of("h2").String()}, done)
	_, err = c.Fork(t.Context(), h1, 1, "h2", "")
	require.ErrorIs(t, err, quipu.ErrFork, "its key has a job")
	_, err = c.Fork(t.Context(), of("h2"), 1, "h3", "")
	require.ErrorIs(t, err, quipu.ErrFork, "a fork is not forked")
	w.ended("h2")
	for job, kind := range map[string]journal.Kind{"h1": journal.KindForked, "h2": journal.KindCreated} {
		found := false
		for e, err := range w.rt.Journal(t.Context(), quipu.Job{ID: of(job)}) {
			require.NoError(t, err)
			if e.Kind != kind {
				continue
			}
			found = true
			who, reason := "", ""
			if e.From != nil {
				who, reason = e.From.Who, e.From.Reason
			} else {
				who, reason = e.Operator.Who, e.Operator.Reason
			}
			require.Equal(t, "a operator: with the mended handler", who+": "+reason)
		}
		require.True(t, found, job)
	}
	j, err := c.Job(t.Context(), "h2", view.Want{})
	require.NoError(t, err)
	require.Equal(t, h1, j.ForkOf)
	require.Equal(t, int64(1), j.ForkAt)
}
