package console_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/inspect"
)

// parcels runs a job whose journal is longer than what is read at once; each of its inputs and
// outputs is long, too.
func (w *site) parcels(key string) {
	w.t.Helper()
	w.deploy("parcels")
	items := make([]string, inspect.Short)
	for n := range items {
		items[n] = strings.Repeat(itoa(int64(n))+" ", 30)
	}
	_, err := w.rt.Start(w.t.Context(), "parcels", key, map[string]any{"items": items})
	require.NoError(w.t, err)
	w.ends(key)
}

// O8: a page of a job with a long journal is there at once, and its history with a second request;
// whatever the job says, it weighs little, and what is cut has a page of its own.
func TestO8LongJob(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	w.parcels("long")
	first := w.get(w.of("long"))
	has(t, first, "the job completed with code 200")
	has(t, first, `class="graph"`)
	has(t, first, "read it</a>")
	has(t, first, `class="tabs"`)
	hasNot(t, first, `aria-label="List of activities"`)
	page := w.get(w.of("long") + "?history=1")
	has(t, page, `class="timeline"`)
	has(t, page, `aria-label="List of activities"`)
	hasNot(t, page, "history=1", "links do not ask for it again")
	require.Less(t, len(page), maxWeight)
	part := w.get(w.of("long") + "?history=1&part=1")
	has(t, part, `class="timeline"`)
	hasNot(t, part, "<html")
	has(t, w.get(w.of("long")), `class="timeline"`, "it is kept")

	second := w.get(w.of("long") + "?tab=messages&from=100")
	require.Len(t, regexp.MustCompile(`<tr id="m-`).FindAllString(second, -1), 100)
	has(t, second, `?tab=messages#h-parts`)
	has(t, second, `?from=200&amp;tab=messages#h-parts`)
	has(t, second, `?from=0&amp;tab=messages#m-`, "what caused it stands on another page of the list")
	require.Less(t, len(second), 2*maxWeight)

	links := regexp.MustCompile(`href="(/jobs/[^"]*/value\?[^"]*)"`).FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, links)
	largest := 0
	for _, l := range links[:3] {
		a := w.do(w.request(http.MethodGet, html.UnescapeString(l[1]), nil))
		require.Equal(t, http.StatusOK, a.StatusCode)
		require.Equal(t, "application/json", a.Header.Get("Content-Type"))
		largest = max(largest, len(a.Body))
	}
	require.Greater(t, largest, 100_000, "the input of the job")
	require.Equal(t, http.StatusBadRequest, w.do(w.request(http.MethodGet, w.of("long")+"/value?entry=1&n=9", nil)).StatusCode)
	token, err := w.rt.Tokens().Create(t.Context(), "eve", access.Viewer, 0)
	require.NoError(t, err)
	req := w.request(http.MethodGet, html.UnescapeString(links[0][1]), nil)
	req.SetBasicAuth("", token)
	require.Equal(t, http.StatusForbidden, w.do(req).StatusCode)
}

// longPages: a browser reads the history by itself.
func longPages(x *tab) {
	x.w.parcels("long")
	x.looks(1280, "light")
	x.opened(x.w.of("long"))
	x.is(`document.querySelector("svg.timeline") !== null && document.querySelector(".parts tbody tr") !== null`)
	x.is(`document.documentElement.scrollHeight <= 3 * innerHeight`)
	require.Less(x.t, x.weighed(), int64(maxWeight))
	x.clean("long")
}
