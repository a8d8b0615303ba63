package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/api/access"
)

// O11: a viewer sees the pages without payloads, and decides nothing; a search does not find what
// is not shown.
func TestO11Viewer(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	token, err := w.rt.Tokens().Create(t.Context(), "eve", access.Viewer, 0)
	require.NoError(t, err)
	client, err := w.rt.Tokens().Create(t.Context(), "shop", access.Client, 0)
	require.NoError(t, err)
	as := func(token, method, page string, form url.Values) answer {
		req := w.request(method, page, form)
		req.SetBasicAuth("", token)
		return w.do(req)
	}
	for _, page := range []string{w.of("done"), w.of("failing"), w.of("parked"), w.of("done") + "?at=3", w.of("done") + "?verify=1", w.of("done") + "?tab=journal", w.of("done") + "?tab=effects", "/dead", "/space", "/flows"} {
		a := as(token, http.MethodGet, page, nil)
		require.Equal(t, http.StatusOK, a.StatusCode, page)
		hasNot(t, a.Body, "r-1&#34;", page)
		hasNot(t, a.Body, "&#34;order&#34;", page)
	}
	has(t, w.get(w.of("done")), "r-1&#34;")
	has(t, as(client, http.MethodGet, w.of("done"), nil).Body, "r-1&#34;")
	has(t, as(token, http.MethodGet, w.of("done")+"?tab=journal&q=receipt", nil).Body, "No event fits.")
	hasNot(t, w.get(w.of("done")+"?tab=journal&q=receipt"), "No event fits.")
	for _, page := range []string{w.of("done") + "/export", "/bulk/export?flow=order"} {
		require.Equal(t, http.StatusForbidden, as(token, http.MethodGet, page, nil).StatusCode, page)
	}
	reason := url.Values{"reason": {"x"}}
	for _, page := range []string{"/dead", "/bulk", w.of("waiting") + "/interrupt"} {
		require.Equal(t, http.StatusForbidden, as(token, http.MethodPost, page, reason).StatusCode, page)
	}
	require.Equal(t, http.StatusForbidden, as(client, http.MethodPost, "/dead", reason).StatusCode)
	require.Equal(t, http.StatusSeeOther, as(client, http.MethodPost, w.of("waiting")+"/interrupt", reason).StatusCode)
	w.ends("waiting")
	has(t, w.get(w.of("waiting")+"?tab=journal"), "shop: interrupt", "who interrupted it")
}
