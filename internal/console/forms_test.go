package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

const desk = `
flow: desk
version: "VERSION"
input: {type: object, required: [n], properties: {n: {type: integer}, note: {type: string, default: none}}}
activities:
  start: {type: trigger}
  first: {type: worker, topic: echo, input: "${ start.output.n }"}
  ask: {type: hook, signal: desk.asked, key: "${ job.id }", output: {ok: "${ signal.payload.ok }"}}
  check: {type: worker, topic: fail, input: {code: 409, message: "not yet"}, retry: {attempts: 1}}
transitions: {start: [first], first: [ask], ask: [{to: check, when: "!ask.output.ok"}]}
`

// to is where an act leads, and what that page says.
func (w *site) to(page string, form url.Values) (next, body string) {
	w.t.Helper()
	a := w.post(page, form)
	require.Equal(w.t, http.StatusSeeOther, a.StatusCode, "%s: %s", page, a.Body)
	next = a.Header.Get("Location")
	req := w.request(http.MethodGet, next, nil)
	req.Header.Set("Sec-Fetch-Site", "same-origin") // a page says only what one of the console's own leads to
	return strings.Split(next, "?")[0], w.do(req).Body
}

// A person deploys a flow, starts a job of it, answers what it waits for, and goes on with it where it
// failed, or as a job of its own from an earlier entry: all from the pages that show it.
func TestO8ActsWhereOneLooks(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	has(t, w.get("/flows"), "Deploy a flow")
	_, said := w.to("/flows", url.Values{"definition": {strings.Replace(desk, "VERSION", "1", 1)}, "activate": {"1"}})
	has(t, said, "deployed, and new jobs take it")
	has(t, said, "&#34;note&#34;: &#34;none&#34;") // a sketch of the input
	page, said := w.to("/flows", url.Values{"definition": {strings.Replace(desk, "VERSION", "2", 1)}})
	has(t, said, "new jobs take it once it is activated")
	_, said = w.to(page+"/activate", url.Values{"version": {"2"}})
	has(t, said, "new jobs take version 2")

	job, said := w.to("/flows/desk/start", url.Values{"version": {"2"}, "key": {"d-1"}, "input": {`{"n": 7}`}})
	has(t, said, "the job has begun")
	require.Equal(t, w.of("d-1"), job)
	_, said = w.to("/flows/desk/start", url.Values{"version": {"2"}, "key": {"d-1"}, "input": {`{"n": 7}`}})
	has(t, said, "it had begun before")
	w.until("d-1", func(j *view.Job) bool { return len(j.Waits) == 1 })
	has(t, w.get(job), `value="desk.asked"`)
	_, said = w.to(job+"/signal", url.Values{"topic": {"desk.asked"}, "key": {"d-1"}, "payload": {`{"ok": false}`}})
	has(t, said, "the signal has come")
	w.ends("d-1")

	has(t, w.get(job), "<option>ask</option>")
	hasNot(t, w.get(job), "<option>start</option>", "from its trigger a job is started anew")
	again := "/flows/desk?again=" + w.id("d-1").String()
	has(t, w.get(job), `href="`+again+`"`)
	has(t, w.get(job), "Then start again with another")
	has(t, w.get(again), `value="d-1-again"`)
	has(t, w.get(again), "&#34;n&#34;: 7\n")
	_, _ = w.to("/flows/desk/start", url.Values{"version": {"2"}, "key": {"d-1-again"}, "input": {`{"n": 8}`}})
	has(t, w.get(again), `value="d-1-again-2"`, "each job has a key of its own")
	next, said := w.to(job+"/resume", url.Values{"from": {"ask"}, "reason": {"ask again"}})
	has(t, said, "it goes on as this job")
	require.NotEqual(t, job, next)
	has(t, w.get(job+"?tab=journal"), "ada")
	has(t, w.get(job+"?tab=journal"), "ask again")
	hasNot(t, w.get(job), ">Resume</button>", "it was resumed already")
	w.until("d-1", func(j *view.Job) bool { return len(j.Waits) == 1 && j.Generation == 2 })
	_, _ = w.to(next+"/signal", url.Values{"topic": {"desk.asked"}, "key": {"d-1"}, "payload": {`{"ok": true}`}})
	w.ends("d-1")

	has(t, w.get(job+"?at=3"), "Fork at entry 3")
	fork, said := w.to(job+"/fork", url.Values{"at": {"3"}, "key": {"d-2"}, "reason": {"what if"}})
	has(t, said, "it goes on from entry 3")
	require.Equal(t, w.of("d-2"), fork)
}

// What a form has wrong is said, and nothing is done.
func TestO8FormsAreChecked(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	token, err := w.rt.Tokens().Create(t.Context(), "shop", access.Client, 0)
	require.NoError(t, err)
	waiting := w.of("waiting")
	for page, form := range map[string]url.Values{
		waiting + "/resume":  {"reason": {""}},
		waiting + "/fork":    {"at": {"0"}, "key": {"x"}, "reason": {"x"}},
		waiting + "/signal":  {"topic": {"approved"}, "key": {"waiting"}, "payload": {"{"}},
		"/jobs/x/resume":     {"reason": {"x"}},
		"/flows":             {"definition": {"flow: ["}},
		"/flows/order/start": {"key": {"bad"}, "input": {`{"other": 1}`}},
		"/flows/" + url.PathEscape("no/such") + "/start": {"key": {"bad"}, "input": {"{}"}},
		"/flows/order/activate":                          {"version": {"9"}},
	} {
		a := w.post(page, form)
		require.GreaterOrEqual(t, a.StatusCode, http.StatusBadRequest, "%s %s", page, a.Body)
		require.Less(t, a.StatusCode, http.StatusInternalServerError, "%s %s", page, a.Body)
	}
	require.Equal(t, http.StatusBadRequest, w.do(w.request(http.MethodGet, "/flows/nightly?again="+w.id("broken").String(), nil)).StatusCode)
	viewer, err := w.rt.Tokens().Create(t.Context(), "eye", access.Viewer, 0)
	require.NoError(t, err)
	see := w.request(http.MethodGet, "/flows/order?again="+w.id("broken").String(), nil)
	see.SetBasicAuth("", viewer)
	seen := w.do(see).Body
	has(t, seen, "Its input is not here: not shown to a viewer.")
	hasNot(t, seen, "&#34;order&#34;: 5")
	_, err = w.rt.Find(t.Context(), "bad")
	require.ErrorIs(t, err, quipu.ErrNotFound)
	for page, status := range map[string]int{
		waiting + "/resume": http.StatusForbidden, waiting + "/fork": http.StatusForbidden, "/flows": http.StatusForbidden,
		"/flows/order/activate": http.StatusForbidden, "/flows/order/start": http.StatusSeeOther,
		waiting + "/signal": http.StatusSeeOther,
	} {
		req := w.request(http.MethodPost, page, url.Values{
			"reason": {"x"}, "key": {"waiting"}, "topic": {"approved"}, "input": {`{"order": 4, "wait": "1h"}`},
		})
		req.SetBasicAuth("", token)
		require.Equal(t, status, w.do(req).StatusCode, page)
	}
	j, err := w.rt.Job(t.Context(), quipu.Job{Key: "waiting"})
	require.NoError(t, err)
	require.NotEqual(t, journal.JobInterrupted, j.State)
}
