package console

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/journal"
)

// FuzzFilter: the filter of an address is read or refused, and is written back the same, so that
// a link to a list leads to that list (O7).
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		"state=open&flow=a&version=1&prefix=o-&tag=x,+y&last=1h", "from=2026-01-31T18:00&to=2026-01-31T19:00:00Z", "last=never", "state=gone", "tag=%00&state=open&state=open", "&&;",
	} {
		f.Add(seed)
	}
	c := &console{}
	f.Fuzz(func(t *testing.T, raw string) {
		q, _ := url.ParseQuery(raw) // what can be read of it, as net/http does
		q.Del("parent")             // is looked up in the database
		x, err := c.filterOf(t.Context(), nil, q)
		if err != nil {
			return
		}
		again, err := c.filterOf(t.Context(), nil, x.query())
		require.NoError(t, err)
		require.Equal(t, x.query(), again.query())
		require.Equal(t, x.States, again.States)
		require.Equal(t, x.jobs.Tags, again.jobs.Tags)
		require.Equal(t, x.jobs.To, again.jobs.To)
		require.LessOrEqual(t, len(x.jobs.States), len(journal.JobStates))
		words, err := valuesOf(x.text())
		if err != nil || strings.Contains(x.text(), `""`) || strings.ContainsRune(raw, '"') || strings.Contains(raw, "%22") {
			return // what the list refuses, too; or a text with quotes
		}
		same, err := c.filterOf(t.Context(), nil, words)
		require.NoError(t, err)
		require.Equal(t, x.query(), same.query(), x.text())
	})
}

// FuzzForm: the decision of a form is one that can be made, or is refused; and no form leads to a
// page of another server (O8).
func FuzzForm(f *testing.F) {
	f.Add("/dead?flow=a", "done", "looked", `{"n":1}`, "", strings.Repeat("0", 64))
	f.Add("//evil.example/x", "fail", "r", "", "404", "")
	f.Add("https://evil.example", "retry", " ", "", "", "x")
	f.Add("/.//evil.example", "resolve", "r", "{", "", "")
	f.Fuzz(func(t *testing.T, page, verdict, reason, result, code, effect string) {
		r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/dead"}, PostForm: url.Values{
			"back": {page}, "verdict": {verdict}, "reason": {reason}, "result": {result}, "code": {code}, "effect": {effect},
		}}
		r.Form = r.PostForm
		w := httptest.NewRecorder()
		(&console{}).done(w, r, back(r, "/dead"), "said")
		to, err := (&url.URL{Scheme: "https", Host: "shop.example", Path: "/dead"}).Parse(w.Header().Get("Location"))
		require.NoError(t, err)
		require.Equal(t, "https://shop.example", to.Scheme+"://"+to.Host)
		require.NotContains(t, w.Header().Get("Location"), `\`)
		d, err := decisionOf(r)
		if err != nil {
			return
		}
		require.NotEmpty(t, d.Reason)
		require.True(t, d.Result == nil || json.Valid(d.Result.(json.RawMessage)))
		require.True(t, d.Verdict != quipu.Fail || d.Message != "" && (d.Code == 0 || d.Code >= 400 && d.Code <= 599))
	})
}
