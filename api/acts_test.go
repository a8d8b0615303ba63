package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
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

// O11: an operator deploys and activates flows, and the space's own chain has who. What is there already
// changes nothing. S7: a viewer and a client may not.
func TestO11DeploySaysWho(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	text := func(version, output string) string {
		return fmt.Sprintf("flow: greet\nversion: %q\nactivities: {start: {type: trigger}}\noutput: %s\n", version, output)
	}
	body, err := json.Marshal(api.DeployRequest{Definition: text("1", "hello")})
	require.NoError(t, err)
	for _, role := range []access.Role{access.Viewer, access.Client} {
		w.refused(w.ask(role, http.MethodPost, "/flows", string(body)), http.StatusForbidden, access.CodeForbidden)
		w.refused(w.ask(role, http.MethodPost, "/flows/greet/1/activate", `{}`), http.StatusForbidden, access.CodeForbidden)
	}
	c := w.client(access.Operator)
	deploy := func(version, output string, activate bool) (fresh, active bool) {
		t.Helper()
		done, err := c.Deploy(t.Context(), text(version, output), activate)
		require.NoError(t, err)
		require.Equal(t, "greet "+version, done.Flow+" "+done.Version)
		return done.Fresh, done.Active
	}
	is := func(fresh, active bool) []bool { return []bool{fresh, active} }
	require.Equal(t, is(true, true), is(deploy("1", "hello", false)), "the first version is active at once")
	require.Equal(t, is(false, true), is(deploy("1", "hello", true)))
	require.Equal(t, is(true, false), is(deploy("2", "good day", false)))
	require.Equal(t, is(false, false), is(deploy("2", "good day", true)), "it was there: nothing is taken")
	for range 2 {
		require.NoError(t, c.Activate(t.Context(), "greet", "2"))
	}
	require.Equal(t, is(true, true), is(deploy("3", "good night", true)))
	_, err = c.Deploy(t.Context(), text("3", "bye"), true)
	require.ErrorIs(t, err, quipu.ErrVersionTaken)
	require.ErrorIs(t, c.Activate(t.Context(), "greet", "9"), quipu.ErrNotFound)
	all, err := c.Flows(t.Context())
	require.NoError(t, err)
	there, err := w.rt.Flows(t.Context())
	require.NoError(t, err)
	require.Equal(t, there, all)

	entries, err := below.Of(w.rt).SpaceEntries(t.Context())
	require.NoError(t, err)
	var said []string
	for _, e := range entries {
		switch {
		case e.Facts["flow"] != "greet":
		case e.Kind == journal.SpaceDeployed:
			said = append(said, fmt.Sprint(e.Who, " deploys ", e.Facts["version"], ", active ", e.Facts["active"]))
		case e.Kind == journal.SpaceActivated:
			said = append(said, fmt.Sprint(e.Who, " activates ", e.Facts["version"], " after ", e.Facts["before"]))
		}
	}
	require.Equal(t, []string{
		"a operator deploys 1, active yes", "a operator deploys 2, active no", "a operator activates 2 after 1",
		"a operator deploys 3, active yes",
	}, said)
}

// O10: the faults of a definition come with their places, a bounded number of them. Its limit is that of a
// flow file, and a body over what such a file can take is refused with both limits.
func TestO10DeployNamesFaults(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	post := func(definition string) reply {
		body, err := json.Marshal(api.DeployRequest{Definition: definition})
		require.NoError(t, err)
		return w.ask(access.Operator, http.MethodPost, "/flows", string(body))
	}
	const faulty = "flow: greet\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n  step: {type: work, topic: x}\ntransitions: {start: [step]}\n"
	p := w.refused(post(faulty), http.StatusUnprocessableEntity, api.CodeFlow)
	require.Contains(t, p.Detail, "definition:5:16: ")
	require.Equal(t, 5, p.Faults[0].Line)
	require.Equal(t, 16, p.Faults[0].Column)
	require.Equal(t, "activities.step.type", p.Faults[0].Path)
	_, want := flow.Parse("definition", []byte(faulty))
	_, err := w.client(access.Operator).Deploy(t.Context(), faulty, true)
	var wrong flow.Faults
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, want, error(wrong))

	var many strings.Builder
	many.WriteString("flow: greet\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n")
	for i := range 300 {
		fmt.Fprintf(&many, "  a%d: {type: work}\n", i)
	}
	p = w.refused(post(many.String()), http.StatusUnprocessableEntity, api.CodeFlow)
	require.Len(t, p.Faults, 100)
	require.Regexp(t, `^\d{3,} faults, the first: definition:5:`, p.Detail)
	w.refused(w.ask(access.Operator, http.MethodPost, "/flows", `{"definition": "flow: x"}`), http.StatusUnprocessableEntity, api.CodeFlow)
	w.refused(post("flow: quipu.undo\nversion: \"1\"\nactivities: {start: {type: trigger}}\n"), http.StatusUnprocessableEntity, api.CodeFlow)

	p = w.refused(post(strings.Repeat("#", flow.MaxDefinitionBytes+1)), http.StatusUnprocessableEntity, api.CodeFlow)
	require.Contains(t, p.Detail, "a flow has at most 8388608 bytes, this has 8388609")
	var done api.Deployed
	long := "flow: long\nversion: \"1\"\nactivities: {start: {type: trigger}}\n"
	w.is(post(long+strings.Repeat("#\n", (flow.MaxDefinitionBytes-len(long))/2)), http.StatusOK, &done)
	require.True(t, done.Active)
	p = w.refused(post(strings.Repeat("#", 2*flow.MaxDefinitionBytes)), http.StatusRequestEntityTooLarge, api.CodeTooLarge)
	require.Contains(t, p.Detail, "a definition has at most 8388608")
}
