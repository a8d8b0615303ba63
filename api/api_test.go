package api_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/view"
)

// O10: a job is started once, whatever repeats the request, and its end is waited for.
func TestO10StartAndWait(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	var s api.Started
	body := `{"flow": "hello", "key": "o/1 ü", "input": {"name": "Ada"}, "tags": ["vip"]}`
	r := w.ask(access.Client, http.MethodPost, "/jobs", body)
	w.is(r, http.StatusCreated, &s)
	require.Equal(t, "new", s.Start)
	first := s.Job
	require.Equal(t, api.Path+"/jobs/"+url.PathEscape("o/1 ü"), r.header.Get("Location"))
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", body), http.StatusOK, &s)
	require.Equal(t, api.Started{Key: "o/1 ü", Job: first, Start: "already"}, s)
	w.refused(w.ask(access.Client, http.MethodPost, "/jobs", strings.Replace(body, "Ada", "Bob", 1)), http.StatusConflict,
		api.CodeConflict)

	out := w.ended(url.PathEscape("o/1 ü"))
	require.Equal(t, "completed", out.State)
	require.JSONEq(t, `{"text": "Ada"}`, string(out.Output))
	require.Equal(t, out, w.ended(first), "an id finds it, too")

	// The header stands for the key.
	body = `{"flow": "hello", "input": {"name": "Ada"}}`
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", body, "Idempotency-Key", `"8e03978e"`), http.StatusCreated, &s)
	require.Equal(t, "8e03978e", s.Key)
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", body, "Idempotency-Key", `8e03978e`), http.StatusOK, &s)
	w.refused(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "hello", "key": "k", "input": {"name": "Ada"}}`, "Idempotency-Key", "other"), http.StatusBadRequest, api.CodeMalformed)

	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "bad", "key": "b1"}`), http.StatusCreated, &s)
	out = w.ended("b1")
	require.Equal(t, "failed", out.State)
	require.Equal(t, 422, out.Code)
	require.Equal(t, "no such customer", out.Error.Message)
	require.JSONEq(t, `{"secret": 7}`, string(out.Error.Data))

	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "hello", "key": "later", "delay": "24h", "input": {"name": "Ada"}}`), http.StatusCreated, &s)
	w.is(w.ask(access.Client, http.MethodGet, "/jobs/later/wait?timeout=0s", ""), http.StatusOK, &out)
	require.False(t, out.Ended)
	require.Equal(t, "open", out.State)
}

// O10: what is refused has a stable code, and says what is wrong.
func TestO10Problems(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	for body, code := range map[string]string{
		`{"flow": "hello", "key": "k", "input": {}}`:                        api.CodeInput,
		`{"flow": "hello", "key": "k", "input": {"name": 1}, "tags": [""]}`: api.CodeInput,
		`{"flow": "hello", "input": {"name": "Ada"}}`:                       api.CodeKey,
	} {
		w.refused(w.ask(access.Client, http.MethodPost, "/jobs", body), http.StatusUnprocessableEntity, code)
	}
	for body, says := range map[string]string{
		``: "flow", `{`: "it ends within a value", `[]`: "byte 1): '[' where", `{"flow": 1}`: "$.flow (byte 10): it cannot be a JSON number",
		`{"flow": x}`: "(byte 10)", `{"flow": "hello"} {}`: "more text behind", `{"flow": "hello", "imput": {}}`: "imput",
		`{"key": "k"}`: "flow", `{"flow": "hello", "delay": "soon"}`: "delay",
	} {
		p := w.refused(w.ask(access.Client, http.MethodPost, "/jobs", body), http.StatusBadRequest, api.CodeMalformed)
		require.Contains(t, p.Detail, says, body)
	}
	w.refused(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "none", "key": "k"}`), http.StatusNotFound, api.CodeNotFound)
	w.refused(w.ask(access.Client, http.MethodPost, "/jobs", "flow=hello", "Content-Type", "application/x-www-form-urlencoded"), http.StatusUnsupportedMediaType, api.CodeMediaType)
	big := w.refused(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "`+strings.Repeat("x", access.DefaultMaxBody)+`"}`),
		http.StatusRequestEntityTooLarge, api.CodeTooLarge)
	require.Contains(t, big.Detail, strconv.Itoa(access.DefaultMaxBody), "the limit")
	odd := w.refused(w.ask(access.Operator, http.MethodGet, "/dead-letters?reason=parkt", ""), http.StatusUnprocessableEntity, api.CodeInput)
	require.Contains(t, odd.Detail, "parked", "the reasons there are")
	for _, path := range []string{"/jobs/none", "/jobs/none/wait", "/jobs/none/verify", "/jobs/none/export", "/flows/none/1"} {
		w.refused(w.ask(access.Operator, http.MethodGet, path, ""), http.StatusNotFound, api.CodeNotFound)
	}
	for _, path := range []string{
		"/jobs?state=done", "/jobs?limit=0", "/jobs?limit=1001", "/jobs?limit=x", "/jobs?from=yesterday", "/jobs?flov=x",
		"/counts?limit=1", "/jobs/x/wait?timeout=2m", "/jobs/x/wait?timeout=soon", "/jobs/x/wait?until_parked=maybe",
		"/dead-letters?cursor=x", "/dead-letters?job=x", "/dead-letters?all=1", "/jobs/x?a=1", "/jobs/x?at=x", "/jobs/x?at=0",
		"/jobs/x/messages?limit=1e3",
	} {
		p := w.refused(w.ask(access.Operator, http.MethodGet, path, ""), http.StatusBadRequest, api.CodeMalformed)
		for _, inside := range []string{"strconv", "parsing time", "time: ", "SQLSTATE"} {
			require.NotContains(t, p.Detail, inside, path)
		}
	}
	w.refused(w.ask(access.Operator, http.MethodGet, "/jobs?cursor=x", ""), http.StatusUnprocessableEntity, api.CodeRejected)
	w.refused(w.ask(access.Operator, http.MethodGet, "/nothing", ""), http.StatusNotFound, api.CodeNoRoute)
	r := w.ask(access.Operator, http.MethodDelete, "/jobs", "")
	w.refused(r, http.StatusMethodNotAllowed, api.CodeMethod)
	require.Equal(t, "POST, GET", r.header.Get("Allow"))
	w.refused(w.ask(access.Client, http.MethodPost, "/signals", `{"topic": "A B", "key": "k"}`), http.StatusUnprocessableEntity, api.CodeInput)
	w.refused(w.ask(access.Client, http.MethodPost, "/signals", `{"topic": "a", "key": "k", "all": true, "keep": "1h"}`), http.StatusBadRequest, api.CodeMalformed)
	w.refused(w.ask(access.Operator, http.MethodPost, "/dead-letters/9/decision", `{"verdict": "retry"}`), http.StatusNotFound, api.CodeNotFound)
	w.refused(w.ask(access.Operator, http.MethodPost, "/dead-letters/9/decision", `{"verdict": "done", "result": null}`), http.StatusNotFound, api.CodeNotFound)
	w.refused(w.ask(access.Operator, http.MethodPost, "/dead-letters/9/decision", `{"verdict": "done"}`), http.StatusUnprocessableEntity, api.CodeInput)
	w.refused(w.ask(access.Operator, http.MethodPost, "/dead-letters/x/decision", `{"verdict": "retry"}`), http.StatusBadRequest, api.CodeMalformed)
}

// O10: signals and interrupts, each once under its idempotency key.
func TestO10SignalAndInterrupt(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	var s api.Started
	var sent api.Signalled
	signal := `{"topic": "order.reviewed", "key": "r1", "payload": {"ok": true}}`
	w.is(w.ask(access.Client, http.MethodPost, "/signals", signal, "Idempotency-Key", "s1"), http.StatusOK, &sent)
	require.Equal(t, api.Signalled{State: "kept"}, sent)
	w.is(w.ask(access.Client, http.MethodPost, "/signals", signal, "Idempotency-Key", "s1"), http.StatusOK, &sent)
	require.True(t, sent.Duplicate)
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "review", "key": "r1", "input": {"review": "r1"}}`), http.StatusCreated, &s)
	require.JSONEq(t, `{"ok": true}`, string(w.ended("r1").Output))
	w.is(w.ask(access.Client, http.MethodPost, "/signals", `{"topic": "order.reviewed", "key": "r1", "all": true}`), http.StatusOK, &sent)
	require.Equal(t, "missed", sent.State)

	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "review", "key": "r2", "input": {"review": "r2"}}`), http.StatusCreated, &s)
	var cut api.Interrupted
	w.is(w.ask(access.Client, http.MethodPost, "/jobs/"+s.Job+"/interrupt", `{"reason": "cancelled", "code": 499}`, "Idempotency-Key", "i1"), http.StatusOK, &cut)
	require.Equal(t, api.Interrupted{Key: "r2", Job: s.Job}, cut)
	out := w.ended("r2")
	require.Equal(t, "interrupted", out.State)
	require.Equal(t, 499, out.Code)
	require.Equal(t, "cancelled", out.Error.Message)
	w.is(w.ask(access.Client, http.MethodPost, "/jobs/"+s.Job+"/interrupt", ``, "Idempotency-Key", "i1"), http.StatusOK, &cut)
	require.True(t, cut.Duplicate)
	w.refused(w.ask(access.Client, http.MethodPost, "/jobs/"+s.Job+"/interrupt", `{"code": 200}`), http.StatusUnprocessableEntity, api.CodeInput)
	w.refused(w.ask(access.Client, http.MethodPost, "/jobs/"+journal.JobID{1}.String()+"/interrupt", `{}`), http.StatusNotFound,
		api.CodeNotFound)
	p := w.refused(w.ask(access.Client, http.MethodPost, "/jobs/r2/interrupt", `{}`), http.StatusBadRequest, api.CodeMalformed)
	require.Contains(t, p.Detail, "by its id", "the key may have another job by then")
}

// O10: lists, counts, one job, flows, verification and export.
func TestO10Reads(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	var s api.Started
	for _, key := range []string{"h1", "h2", "h3"} {
		w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "hello", "key": "`+key+`", "input": {"name": "Ada"}, "tags": ["t"]}`), http.StatusCreated, &s)
		w.ended(key)
	}
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "review", "key": "r1", "input": {"review": "r1"}}`), http.StatusCreated, &s)
	var keys []string
	for cursor, more := "", true; more; {
		var page api.Page
		w.is(w.ask(access.Viewer, http.MethodGet, "/jobs?limit=2&cursor="+url.QueryEscape(cursor), ""), http.StatusOK, &page)
		for _, j := range page.Jobs {
			keys = append(keys, j.Key)
		}
		cursor, more = page.Next, page.Next != ""
	}
	require.ElementsMatch(t, []string{"r1", "h3", "h2", "h1"}, keys, "the time of a start is up to 50 ms behind")
	var page api.Page
	w.is(w.ask(access.Viewer, http.MethodGet, "/jobs?state=completed&state=failed&flow=hello&version=1&tag=t&prefix=h&from=2020-01-01T00:00:00Z", ""), http.StatusOK, &page)
	require.Len(t, page.Jobs, 3)
	var counts api.Counts
	w.is(w.ask(access.Viewer, http.MethodGet, "/counts", ""), http.StatusOK, &counts)
	require.Equal(t, api.Counts{Jobs: map[string]int64{"open": 1, "completed": 3}, Looked: 4}, counts)

	var job view.Job
	require.Eventually(t, func() bool {
		w.is(w.ask(access.Client, http.MethodGet, "/jobs/r1", ""), http.StatusOK, &job)
		return len(job.Waits) == 1
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, "order.reviewed", job.Waits[0].Topic)
	w.is(w.ask(access.Client, http.MethodGet, "/jobs/h1", ""), http.StatusOK, &job)
	require.JSONEq(t, `{"text": "Ada"}`, string(job.Output))
	require.True(t, job.Ended)

	var flows api.Flows
	w.is(w.ask(access.Viewer, http.MethodGet, "/flows", ""), http.StatusOK, &flows)
	require.Len(t, flows.Flows, 4)
	var definition map[string]any
	w.is(w.ask(access.Viewer, http.MethodGet, "/flows/hello/1", ""), http.StatusOK, &definition)
	require.Equal(t, "hello", definition["flow"])

	var v api.Verified
	w.is(w.ask(access.Viewer, http.MethodGet, "/jobs/h1/verify", ""), http.StatusOK, &v)
	require.True(t, v.OK, v.Violation)
	require.Len(t, v.Checks, 19)
	r := w.ask(access.Client, http.MethodGet, "/jobs/h1/export", "")
	require.Equal(t, http.StatusOK, r.status)
	require.Contains(t, r.body, export.Format)
	require.Equal(t, "application/jsonl", r.header.Get("Content-Type"))
}

// O10, O11: a dead letter is seen and decided on, and the journal has the name of the token.
func TestO11DecisionSaysWho(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	var s api.Started
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "charge", "key": "c1"}`), http.StatusCreated, &s)
	var out api.Outcome
	w.is(w.ask(access.Client, http.MethodGet, "/jobs/c1/wait?timeout=60s&until_parked=true", ""), http.StatusOK, &out)
	require.False(t, out.Ended)
	require.Len(t, out.DeadLetters, 1)
	require.Equal(t, quipu.ReasonParked, out.DeadLetters[0].Reason)
	var page api.Letters
	w.is(w.ask(access.Viewer, http.MethodGet, "/dead-letters?flow=charge&topic=cut&reason=parked&prefix=c&from=2020-01-01T00:00:00Z&limit=1&job="+s.Job, ""), http.StatusOK, &page)
	require.Equal(t, out.DeadLetters[0], page.DeadLetters[0])
	path := "/dead-letters/1/decision"
	w.refused(w.ask(access.Client, http.MethodPost, path, `{"verdict": "retry"}`), http.StatusForbidden, access.CodeForbidden)
	w.refused(w.ask(access.Operator, http.MethodPost, path, `{"verdict": "retry", "code": 500}`), http.StatusUnprocessableEntity, api.CodeInput)
	r := w.ask(access.Operator, http.MethodPost, path, `{"verdict": "done", "result": "charged", "reason": "it is in the books"}`)
	require.Equal(t, http.StatusNoContent, r.status, r.body)
	require.JSONEq(t, `{"said": "charged"}`, string(w.ended("c1").Output))
	w.refused(w.ask(access.Operator, http.MethodPost, path, `{"verdict": "retry"}`), http.StatusConflict, api.CodeStale)

	job, err := w.rt.Find(t.Context(), "c1")
	require.NoError(t, err)
	var who []string
	for e, err := range w.rt.Journal(t.Context(), job) {
		require.NoError(t, err)
		if e.Kind == journal.KindOperator {
			who = append(who, e.Operator.Who+": "+e.Operator.Reason)
		}
	}
	require.Equal(t, []string{"a operator: it is in the books"}, who)
}

// O11: the journal says who started a job, who sent it a signal and who interrupted one, keeps every
// law with it, and gives the tables again.
func TestO11ActsSayWho(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	var s api.Started
	var cut api.Interrupted
	var sent api.Signalled
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "review", "key": "r1", "input": {"review": "r1"}}`), http.StatusCreated, &s)
	w.is(w.ask(access.Operator, http.MethodPost, "/jobs/"+s.Job+"/interrupt", `{"reason": "cancelled"}`), http.StatusOK, &cut)
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "review", "key": "r2", "input": {"review": "r2"}}`), http.StatusCreated, &s)
	w.is(w.ask(access.Operator, http.MethodPost, "/signals", `{"topic": "order.reviewed", "key": "r2", "payload": {"ok": true}}`), http.StatusOK, &sent)
	for key, want := range map[string][]string{
		"r1": {"start by a client", "interrupt by a operator"},
		"r2": {"start by a client", "signal by a operator"},
	} {
		w.ended(key)
		job, err := w.rt.Find(t.Context(), key)
		require.NoError(t, err)
		var who []string
		for e, err := range w.rt.Journal(t.Context(), job) {
			require.NoError(t, err)
			if e.Operator != nil {
				who = append(who, e.Operator.Action+" by "+e.Operator.Who)
			}
			if e.Response != nil && e.Response.Who != "" {
				who = append(who, "signal by "+e.Response.Who)
			}
		}
		require.Equal(t, want, who)
		events, err := w.rt.History(t.Context(), job)
		require.NoError(t, err)
		require.Contains(t, events[0].Text, ", by a client")
		var v api.Verified
		w.is(w.ask(access.Viewer, http.MethodGet, "/jobs/"+key+"/verify", ""), http.StatusOK, &v)
		require.True(t, v.OK, v.Violation)
		found, err := w.rt.Operator().Fsck(t.Context(), job.ID)
		require.NoError(t, err)
		require.Empty(t, found.Broken)
		require.Empty(t, found.Differences)
	}
}

// O11: a viewer sees no payload, unless that is allowed.
func TestO11Payloads(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	var s api.Started
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "hello", "key": "h1", "input": {"name": "Ada"}}`), http.StatusCreated, &s)
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "bad", "key": "b1"}`), http.StatusCreated, &s)
	w.ended("h1")
	w.ended("b1")
	for _, path := range []string{
		"/jobs/h1", "/jobs/h1/wait", "/jobs/b1", "/jobs/b1/wait", "/jobs/h1/verify", "/jobs", "/jobs/h1?journal=true&reasons=true",
		"/jobs/h1?at=2&journal=true", "/jobs/b1?journal=true&reasons=true", "/jobs/h1/events", "/jobs/h1/messages", "/jobs/h1/trace",
		"/jobs/b1/events", "/jobs/b1/trace",
	} {
		r := w.ask(access.Viewer, http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, r.status, r.body)
		require.NotContains(t, r.body, "Ada", path)
		require.NotContains(t, r.body, "secret", path)
	}
	w.refused(w.ask(access.Viewer, http.MethodGet, "/jobs/h1/export", ""), http.StatusForbidden, access.CodeForbidden)
	for _, path := range []string{"/jobs", "/signals", "/jobs/h1/interrupt", "/jobs/h1/resume", "/dead-letters/1/decision"} {
		w.refused(w.ask(access.Viewer, http.MethodPost, path, "{}"), http.StatusForbidden, access.CodeForbidden)
	}
	w.refused(w.ask("", http.MethodGet, "/jobs", ""), http.StatusUnauthorized, access.CodeUnauthenticated)
	w.refused(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "hello"}`, "Sec-Fetch-Site", "cross-site"), http.StatusForbidden, access.CodeCrossOrigin)
}

// O10: who accepts events is told once that the job waits for a person, and then its end.
func TestO10Events(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	var s api.Started
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "charge", "key": "c1"}`), http.StatusCreated, &s)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/jobs/c1/wait", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+w.tokens[access.Viewer])
	r.Header.Set("Accept", "text/event-stream")
	resp, err := (&http.Client{Transport: held{t}}).Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	next := func(event string) (out api.Outcome) {
		for lines.Scan() {
			if lines.Text() == "event: "+event {
				require.True(t, lines.Scan())
				require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &out))
				return out
			}
			require.NotContains(t, lines.Text(), "event: ")
		}
		t.Fatalf("no event %s: %v", event, lines.Err())
		return out
	}
	require.Len(t, next("parked").DeadLetters, 1)
	require.Equal(t, http.StatusNoContent, w.ask(access.Operator, http.MethodPost, "/dead-letters/1/decision", `{"verdict": "fail", "code": 502}`).status)
	out := next("ended")
	require.True(t, out.Ended)
	require.Equal(t, 502, out.Code)
	for lines.Scan() { // to the end of the stream
		require.Empty(t, lines.Text())
	}
	require.NoError(t, lines.Err())
}

// What holds answers against the document notices one that does not fit.
func TestDescribedFindsWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	d, err := described()
	require.NoError(t, err)
	good := map[string]any{"key": "k", "job": "0195d5e2-7b1c-4c57-8a52-2f0a6f1c2d3e", "start": "new"}
	require.NoError(t, d.fits("#/components/schemas/Started", good))
	for name, wrong := range map[string]any{"key": 1, "job": "k", "start": "old", "more": true} {
		bad := maps.Clone(good)
		bad[name] = wrong
		require.Error(t, d.fits("#/components/schemas/Started", bad), name)
	}
	require.Error(t, d.fits("#/paths/~1jobs/post/responses/201/content/application~1json/schema", map[string]any{}))
}
