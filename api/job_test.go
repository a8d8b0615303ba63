package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// begin starts a job as a client, and returns its id.
func (w *site) begin(flow, key, input string) string {
	w.t.Helper()
	var s api.Started
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", fmt.Sprintf(`{"flow": %q, "key": %q, "input": %s}`, flow, key, input)), http.StatusCreated, &s)
	return s.Job
}

// jobs starts a job that completes (h1), one that fails (b1), and one that stays open (r1), and waits
// until they stand so.
func (w *site) jobs() {
	w.t.Helper()
	w.begin("hello", "h1", `{"name": "Ada"}`)
	w.begin("bad", "b1", `{}`)
	w.begin("review", "r1", `{"review": "r1"}`)
	w.ended("h1")
	w.ended("b1")
	require.Eventually(w.t, func() bool {
		var j view.Job
		w.is(w.ask(access.Client, http.MethodGet, "/jobs/r1", ""), http.StatusOK, &j)
		return len(j.Waits) == 1
	}, time.Minute, 10*time.Millisecond)
}

// client is a client with the token of a role.
func (w *site) client(role access.Role) *api.Client {
	w.t.Helper()
	c, err := api.NewClient(strings.TrimSuffix(w.url, api.Path), w.tokens[role])
	require.NoError(w.t, err)
	return c
}

// O10: what the API says of a job is what Inspect says, to the letter: of one that completed, that
// failed, and that is open, as it stands and as it stood at an entry. So is what the Go client makes of
// all its pages.
func TestO10JobIsWhatInspectSays(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.jobs()
	w.begin("charge", "c1", `{}`)
	var out api.Outcome
	w.is(w.ask(access.Client, http.MethodGet, "/jobs/c1/wait?timeout=60s&until_parked=true", ""), http.StatusOK, &out)
	for _, key := range []string{"h1", "b1", "r1", "c1"} {
		for query, want := range map[string]view.Want{
			"":                            {},
			"journal=true":                {Journal: true},
			"reasons=true&addresses=true": {Reasons: true, Addresses: true},
			"journal=true&reasons=true":   {Journal: true, Reasons: true},
			"at=2":                        {At: 2},
			"at=2&journal=true":           {At: 2, Journal: true},
		} {
			want.Graph, want.Effects = true, true
			require.EventuallyWithT(t, func(c *assert.CollectT) { // a job that is open may go on
				said, err := w.rt.Inspect(t.Context(), quipu.Job{Key: key}, want)
				require.NoError(c, err)
				text, err := json.Marshal(said)
				require.NoError(c, err)
				require.JSONEq(c, string(text), w.ask(access.Client, http.MethodGet, "/jobs/"+key+"?"+query, "").body)
			}, time.Minute, 10*time.Millisecond, key+" "+query)
		}
		for _, at := range []int64{0, 2} {
			want := view.Want{
				At: at, Graph: true, Effects: true, Journal: true, Events: true, Messages: true, Tree: true,
				Reasons: true, Addresses: true,
			}
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				said, err := w.rt.Inspect(t.Context(), quipu.Job{Key: key}, want)
				require.NoError(c, err)
				got, err := w.client(access.Client).Job(t.Context(), key, want)
				require.NoError(c, err)
				require.NotEmpty(c, got.Events)
				require.NotEmpty(c, got.Tree.Spans)
				text, err := json.Marshal(said)
				require.NoError(c, err)
				again, err := json.Marshal(got)
				require.NoError(c, err)
				require.JSONEq(c, string(text), string(again))
			}, time.Minute, 10*time.Millisecond, "%s at %d", key, at)
		}
	}
}

// O10: all pages of a list together are the list, and a page is at most as long as was asked for.
func TestO10PagesAreTheList(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.jobs()
	for _, list := range []string{"events", "messages", "spans"} {
		path := "/jobs/b1/" + list
		if list == "spans" {
			path = "/jobs/b1/trace"
		}
		items := func(query string) (all []json.RawMessage, next string) {
			var page map[string]json.RawMessage
			w.is(w.ask(access.Client, http.MethodGet, path+query, ""), http.StatusOK, &page)
			require.NoError(t, json.Unmarshal(page[list], &all))
			if page["next"] != nil {
				require.NoError(t, json.Unmarshal(page["next"], &next))
			}
			return all, next
		}
		whole, next := items("")
		require.Empty(t, next)
		require.Greater(t, len(whole), 2)
		var all []json.RawMessage
		for cursor, more := "0", true; more; {
			page, next := items("?limit=2&cursor=" + cursor)
			require.LessOrEqual(t, len(page), 2)
			all = append(all, page...)
			cursor, more = next, next != ""
		}
		require.Equal(t, whole, all)
		none, next := items(fmt.Sprintf("?cursor=%d", len(whole)))
		require.Empty(t, none)
		require.Empty(t, next)
		beyond := w.ask(access.Client, http.MethodGet, fmt.Sprintf("%s?cursor=%d", path, len(whole)+1), "")
		p := w.refused(beyond, http.StatusBadRequest, api.CodeMalformed)
		require.Contains(t, p.Detail, fmt.Sprintf("the list has %d items", len(whole)))
		for _, query := range []string{"?cursor=-1", "?cursor=x", "?limit=0", "?limit=10001", "?at=0", "?at=x", "?colour=red"} {
			w.refused(w.ask(access.Client, http.MethodGet, path+query, ""), http.StatusBadRequest, api.CodeMalformed)
		}
	}
}

// O10: what a journal does not have is named with what it has: an entry, a message.
func TestO10WhatAJournalLacks(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.jobs()
	job, err := w.rt.Job(t.Context(), quipu.Job{Key: "h1"})
	require.NoError(t, err)
	for _, path := range []string{"/jobs/h1", "/jobs/h1/events", "/jobs/h1/messages", "/jobs/h1/trace"} {
		p := w.refused(w.ask(access.Client, http.MethodGet, path+"?at=99", ""), http.StatusNotFound, api.CodeNotFound)
		require.Contains(t, p.Detail, fmt.Sprintf("has %d, not 99", job.Entries))
	}
	for _, path := range []string{"/jobs/none/events", "/jobs/none/messages", "/jobs/none/trace", "/jobs/none?reasons=true"} {
		w.refused(w.ask(access.Client, http.MethodGet, path, ""), http.StatusNotFound, api.CodeNotFound)
	}
	var all, one api.Messages
	w.is(w.ask(access.Client, http.MethodGet, "/jobs/h1/messages", ""), http.StatusOK, &all)
	last := all.Messages[len(all.Messages)-1]
	w.is(w.ask(access.Client, http.MethodGet, "/jobs/h1/messages?guid="+strings.ToUpper(last.GUID.String()), ""), http.StatusOK, &one)
	require.Equal(t, api.Messages{Messages: []view.Message{last}}, one)
	p := w.refused(w.ask(access.Client, http.MethodGet, "/jobs/h1/messages?guid=none", ""), http.StatusNotFound, api.CodeNotFound)
	require.Contains(t, p.Detail, "none of the ")
	for _, path := range []string{"/jobs/h1?addresses=maybe", "/jobs/h1?journal=1", "/jobs/h1?reasons=yes", "/jobs/h1?at=-1"} {
		w.refused(w.ask(access.Client, http.MethodGet, path, ""), http.StatusBadRequest, api.CodeMalformed)
	}
}

// O10: a read without parameters reads no journal: it answers also where that cannot be read.
func TestO10ReadingAJobReadsNoJournal(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.jobs()
	cfg := w.home.Config()
	db, err := pgx.Connect(t.Context(), cfg.Postgres)
	require.NoError(t, err)
	defer func() { _ = db.Close(t.Context()) }()
	table := pgx.Identifier{"quipu_" + cmp.Or(cfg.Space, quipu.DefaultSpace), "entries"}.Sanitize()
	_, err = db.Exec(t.Context(), "ALTER TABLE "+table+" DISABLE TRIGGER ALL")
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), "UPDATE "+table+" SET body = 'none' WHERE seq = 1")
	require.NoError(t, err)
	for _, path := range []string{"/jobs/h1", "/jobs/b1", "/jobs/r1", "/jobs/r1?reasons=true"} {
		r := w.ask(access.Client, http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, r.status, path+r.body)
	}
	for _, path := range []string{"/jobs/h1?journal=true", "/jobs/b1?reasons=true", "/jobs/h1?at=1", "/jobs/h1/events"} {
		require.Equal(t, http.StatusInternalServerError, w.ask(access.Client, http.MethodGet, path, "").status, path)
	}
}

// O10: few calls at a time read a whole journal, and those that read none go on beside them.
func TestO10FewReadJournals(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.jobs()
	entered, release := make(chan struct{}), make(chan struct{})
	taken := w.guard.Wrap(w.guard.Few(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-release
	})))
	var holding sync.WaitGroup
	for range access.MaxLongOfOne {
		holding.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Header.Set("Authorization", "Bearer "+w.tokens[access.Viewer])
			taken.ServeHTTP(httptest.NewRecorder(), r)
		})
		<-entered
	}
	for path, is := range map[string]int{
		"/jobs/h1": http.StatusOK, "/jobs/r1?reasons=true": http.StatusOK, "/space": http.StatusOK,
		"/jobs/h1?journal=true": http.StatusTooManyRequests, "/jobs/h1?at=1": http.StatusTooManyRequests,
		"/jobs/h1?reasons=true": http.StatusTooManyRequests, "/jobs/h1/messages": http.StatusTooManyRequests,
		"/jobs/h1/events": http.StatusTooManyRequests, "/jobs/h1/trace": http.StatusTooManyRequests,
		"/jobs/h1/verify": http.StatusTooManyRequests,
	} {
		require.Equal(t, is, w.ask(access.Viewer, http.MethodGet, path, "").status, path)
	}
	close(release)
	holding.Wait()
	require.Equal(t, http.StatusOK, w.ask(access.Viewer, http.MethodGet, "/jobs/h1/events", "").status)
}

// Many jobs at a time: a page of a filter, or those that are named. Each has what became of it.
func TestBulkActs(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.jobs()
	w.ended("b1")
	ops := w.client(access.Operator)
	w.refused(w.ask(access.Client, http.MethodPost, "/bulk/resume?flow=bad", `{"reason": "r"}`), http.StatusForbidden, access.CodeForbidden)
	for query, body := range map[string]string{"?flow=bad": `{}`, "": `{"reason": "r"}`, "?limit=9": `{"reason": "r", "jobs": ["x"]}`} {
		w.refused(w.ask(access.Operator, http.MethodPost, "/bulk/resume"+query, body), http.StatusBadRequest, api.CodeMalformed)
	}
	old, err := w.rt.Find(t.Context(), "b1")
	require.NoError(t, err)
	why := api.BulkResumeRequest{Reason: "all again"}
	done, err := ops.ResumeMany(t.Context(), quipu.JobFilter{Flow: "bad"}, why)
	require.NoError(t, err)
	require.Equal(t, []api.ActedOn{{Key: "b1", Job: old.ID.String(), Did: true}}, done.Jobs)
	why.Jobs = []string{old.ID.String(), journal.JobID{1}.String()}
	done, err = ops.ResumeMany(t.Context(), quipu.JobFilter{}, why)
	require.NoError(t, err)
	require.Len(t, done.Jobs, 2)
	require.Equal(t, api.CodeStale, done.Jobs[0].Problem.Code)
	require.Equal(t, api.CodeNotFound, done.Jobs[1].Problem.Code)

	open, err := w.rt.Find(t.Context(), "r1")
	require.NoError(t, err)
	ended, err := w.client(access.Client).InterruptMany(t.Context(), quipu.JobFilter{},
		api.BulkInterruptRequest{Jobs: []string{open.ID.String(), old.ID.String()}, Reason: "no more"})
	require.NoError(t, err)
	require.Equal(t, []api.ActedOn{
		{Key: "r1", Job: open.ID.String(), Did: true}, {Key: "b1", Job: old.ID.String()},
	}, ended.Jobs)
	require.Equal(t, string(journal.JobInterrupted), w.ended("r1").State)
}

// O11: an operator resumes a job by its id, once, and the journal has who and why.
func TestO11ResumeSaysWho(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.jobs()
	id := func(key string) journal.JobID {
		job, err := w.rt.Find(t.Context(), key)
		require.NoError(t, err)
		return job.ID
	}
	failed, open := id("b1"), id("r1")
	path := "/jobs/" + failed.String() + "/resume"
	w.refused(w.ask(access.Client, http.MethodPost, path, `{}`), http.StatusForbidden, access.CodeForbidden)
	p := w.refused(w.ask(access.Operator, http.MethodPost, "/jobs/b1/resume", `{}`), http.StatusBadRequest, api.CodeMalformed)
	require.Contains(t, p.Detail, "a resume names a job by its id")
	for job, code := range map[journal.JobID]string{{1}: api.CodeNotFound, open: api.CodeResume} {
		r := w.ask(access.Operator, http.MethodPost, "/jobs/"+job.String()+"/resume", `{}`)
		w.refused(r, r.status, code)
	}
	w.refused(w.ask(access.Operator, http.MethodPost, path, `{"from": "nowhere"}`), http.StatusConflict, api.CodeResume)

	c := w.client(access.Operator)
	_, err := c.Resume(t.Context(), open, "", "")
	require.ErrorIs(t, err, quipu.ErrResume)
	done, err := c.Resume(t.Context(), failed, "step", "the customer is known now")
	require.NoError(t, err)
	require.Equal(t, api.Resumed{Key: "b1", Job: id("b1").String(), Generation: 2}, done)
	_, err = c.Resume(t.Context(), failed, "", "")
	require.ErrorIs(t, err, quipu.ErrStale)
	for e, err := range w.rt.Journal(t.Context(), quipu.Job{ID: id("b1")}) {
		require.NoError(t, err)
		if e.Kind == journal.KindCreated {
			require.Equal(t, failed, e.From.Job)
			require.Equal(t, "a operator: the customer is known now", e.From.Who+": "+e.From.Reason)
		}
	}
	j, err := c.Job(t.Context(), "b1", view.Want{})
	require.NoError(t, err)
	require.Equal(t, failed, j.Resumes)
	require.Equal(t, int64(2), j.Generation)
}

// O10: the Go client has the rest of what the API says: the space, a definition, a verification and an
// export, each as the runtime has it.
func TestClientReadsTheSpace(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.jobs()
	c := w.client(access.Client)
	require.EventuallyWithT(t, func(e *assert.CollectT) {
		want, err := w.rt.Space(t.Context())
		require.NoError(e, err)
		got, err := c.Space(t.Context())
		require.NoError(e, err)
		got.Time = want.Time
		got.Started = want.Started
		require.Equal(e, want, got)
		require.Equal(e, []view.FlowLoad{{Flow: "review", Open: 1}}, got.Flows)
	}, time.Minute, 10*time.Millisecond)
	text, err := c.Definition(t.Context(), "hello", "1")
	require.NoError(t, err)
	require.True(t, json.Valid(text))
	require.True(t, strings.HasPrefix(string(text), `{"activities"`), "it is the canonical text")
	v, err := c.Verify(t.Context(), "h1")
	require.NoError(t, err)
	require.True(t, v.OK)
	var lines strings.Builder
	require.NoError(t, c.Export(t.Context(), "h1", &lines))
	require.Equal(t, w.ask(access.Client, http.MethodGet, "/jobs/h1/export", "").body, lines.String())
	require.ErrorIs(t, c.Export(t.Context(), "none", &lines), quipu.ErrNotFound)
	require.Error(t, w.client(access.Viewer).Export(t.Context(), "h1", &lines), "it has payloads")
	_, err = c.Job(t.Context(), "none", view.Want{Events: true})
	require.ErrorIs(t, err, quipu.ErrNotFound)
}
