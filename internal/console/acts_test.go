package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// O8: a person decides on dead letters, and the journal says who and why.
func TestO8Acts(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	for n, verdict := range []string{"done", "fail", "resolve"} {
		key := "cut-" + verdict
		w.start(key, map[string]any{"order": 10 + n, "cut": true})
		w.until(key, func(j *view.Job) bool { return len(j.DeadLetters) == 1 })
		letters, err := w.rt.Operator().DeadLetters(t.Context(),
			quipu.DeadLetterFilter{Jobs: []journal.JobID{w.id(key)}})
		require.NoError(t, err)
		form := url.Values{
			"id": {itoa(letters[0].ID)}, "verdict": {verdict}, "reason": {"seen in the books"}, "result": {`{"receipt": "by hand"}`}, "code": {"502"}, "back": {w.of(key)},
		}
		if verdict == "done" { // null would be recorded for good
			empty := maps.Clone(form)
			empty["result"] = []string{" "}
			a := w.post("/dead", empty)
			require.Equal(t, http.StatusBadRequest, a.StatusCode, a.Body)
			require.Contains(t, a.Body, "the result is missing: what the effect&#39;s function would have returned")
			has(t, w.get(w.of(key)), "waits for a person")
		}
		a := w.post("/dead", form)
		require.Equal(t, http.StatusSeeOther, a.StatusCode, a.Body)
		require.Contains(t, a.Header.Get("Location"), w.of(key)+"?said=1+dead+letter+decided")
		w.ends(key)
		page := w.get(w.of(key) + "?tab=journal")
		has(t, page, "ada")
		has(t, page, "seen in the books")
		require.Equal(t, http.StatusConflict, w.post("/dead", form).StatusCode, "it has ended")
	}
	a := w.post("/dead", url.Values{"id": {"1"}, "verdict": {"fail"}, "reason": {"x"}, "back": {"//example.com/"}})
	require.False(t, strings.HasPrefix(a.Header.Get("Location"), "//"), "an act returns to the console")

	require.Equal(t, http.StatusSeeOther, w.post(w.of("waiting")+"/interrupt", url.Values{"reason": {"cancelled"}}).StatusCode)
	w.ends("waiting")
	has(t, w.get(w.of("waiting")+"?tab=journal"), "ada: interrupt")

	old := w.of("waiting") // a page that somebody has open while the job is resumed
	next, err := w.rt.Resume(t.Context(), quipu.Job{Key: "waiting"})
	require.NoError(t, err)
	require.Contains(t, w.post(old+"/interrupt", url.Values{"reason": {"again"}}).Header.Get("Location"), "ended+already")
	v, err := w.rt.Job(t.Context(), next)
	require.NoError(t, err)
	require.Equal(t, journal.JobOpen, v.State)
}

// O7: an act on all jobs that a filter selects, with its progress, and with none that began after
// they were counted.
func TestO7Bulk(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	for n := range 5 {
		w.start(fmt.Sprint("many-", n), map[string]any{"order": n, "wait": "1h"})
	}
	has(t, w.get("/bulk?flow=order&prefix=many-"), "<strong>5 jobs</strong>")
	has(t, w.get("/bulk?flow=order&prefix=many-"), `name="count" value="5"`)
	until := time.Now().Format(time.RFC3339Nano)
	time.Sleep(60 * time.Millisecond) // the time of a start is up to 50 ms behind
	w.start("many-late", map[string]any{"order": 9, "wait": "1h"})
	a := w.post("/bulk", url.Values{"flow": {"order"}, "prefix": {"many-"}, "to": {until}, "count": {"5"}, "act": {"interrupt"}, "reason": {"sale cancelled"}})
	require.Equal(t, http.StatusOK, a.StatusCode)
	has(t, a.Body, "Finished: 5 of 5 jobs looked at, 5 done, 0 failed, 0 had nothing to do")
	for n := range 5 {
		w.ends(fmt.Sprint("many-", n))
	}
	late, err := w.rt.Job(t.Context(), quipu.Job{Key: "many-late"})
	require.NoError(t, err)
	require.Equal(t, journal.JobOpen, late.State)
	has(t, w.post("/bulk", url.Values{"flow": {"order"}, "prefix": {"many-"}, "to": {until}, "act": {"resume"}, "reason": {"sale again"}}).Body, "5 done")
	has(t, w.post("/bulk", url.Values{"prefix": {"parked"}, "act": {"retry"}, "reason": {"the line is back"}}).Body, "1 done")
	w.until("parked", func(j *view.Job) bool { return len(j.DeadLetters) == 2 })
}

// O6: a page that is open learns what changed, without being asked for again.
func TestO6Live(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	short := httptest.NewUnstartedServer(guarded(w.rt,
		access.Config{Local: &access.Who{Name: "ada", Role: access.Operator}}))
	// a stream outlasts both
	short.Config.ReadTimeout, short.Config.WriteTimeout = 300*time.Millisecond, 300*time.Millisecond
	short.Start()
	defer short.Close()
	w.page.Close()
	w.page = short
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req := w.request(http.MethodGet, "/live?page="+url.QueryEscape("/jobs?prefix=live-"), nil).WithContext(ctx)
	r, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer r.Body.Close()
	require.Equal(t, "text/event-stream", r.Header.Get("Content-Type"))
	pages := bufio.NewScanner(r.Body)
	pages.Buffer(nil, 1<<20)
	next := func() (page string) {
		for pages.Scan() {
			if data, ok := strings.CutPrefix(pages.Text(), "data: "); ok {
				require.NoError(t, json.Unmarshal([]byte(data), &page))
				return page
			}
		}
		require.FailNow(t, "the stream ended", "%v", pages.Err())
		return ""
	}
	has(t, next(), "No jobs.")
	for range 4 { // two looks later: each is a line and an empty one
		require.True(t, pages.Scan(), "%v", pages.Err())
	}
	w.start("live-1", map[string]any{"order": 1})
	has(t, next(), ">live-1</a>")
}
