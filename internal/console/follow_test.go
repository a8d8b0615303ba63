package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
)

// stream follows a page as somebody with a token, "" for who is local.
func (w *site) stream(page, token string) *http.Response {
	w.t.Helper()
	req := w.request(http.MethodGet, "/live?page="+url.QueryEscape(page), nil)
	if token != "" {
		req.SetBasicAuth("", token)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// told is the next event of a stream: its name, and the text of it.
func told(t *testing.T, lines *bufio.Scanner) (name, text string) {
	t.Helper()
	for lines.Scan() {
		if line, is := strings.CutPrefix(lines.Text(), "event: "); is {
			require.True(t, lines.Scan())
			require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &text))
			return line, text
		}
	}
	return "", ""
}

func scanner(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 8<<20)
	return lines
}

// O6, O11: pages of a list can be followed, and nothing else: no stream, no download, no proof. One
// person does not take every place, who may see no payloads is told none, and a stream ends with its
// token.
func TestO6Following(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	for _, page := range []string{
		"/bulk/export?flow=order", w.of("done") + "/export", w.of("done") + "/value?entry=1&n=0", "/job?key=done", "/jobs/counts", "/bulk", "/flows/order", "/assets/console.css",
		"/live", "/live?page=/jobs", w.of("done") + "?verify=1", w.of("done") + "?at=3", "/jobs?before=x", "/dead?before=7", "//jobs", "/jobs/", "/x/../jobs", "jobs", "", "/nothing", "/jobs?more=1",
		"http://127.0.0.1/jobs", "/jobs?flow=a&flow=b", "/jobs?prefix=%00", "/jobs/done", "/jobs?last=soon", "/jobs?prefix=" + strings.Repeat("x", 5000), "/jobs/%2e%2e/bulk/export",
	} {
		resp := w.stream(page, "")
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, page)
		require.Equal(t, "text/html; charset=utf-8", resp.Header.Get("Content-Type"), page)
	}
	resp := w.stream("/jobs/00000000-0000-4000-8000-000000000001", "")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)

	name, text := told(t, scanner(w.stream("/jobs?flow=order&said=", "").Body))
	require.Equal(t, "page", name)
	has(t, text, "waiting")
	lines := scanner(w.stream(w.of("done"), "").Body)
	name, text = told(t, lines)
	require.Equal(t, "page", name)
	has(t, text, "r-1&#34;")
	name, _ = told(t, lines)
	require.Equal(t, "over", name, "what has ended does not change")
	require.False(t, lines.Scan() && lines.Text() != "", "and the stream ends")

	eve, err := w.rt.Tokens().Create(t.Context(), "eve", access.Viewer, 0)
	require.NoError(t, err)
	ada, err := w.rt.Tokens().Create(t.Context(), "ada's own", access.Viewer, 0)
	require.NoError(t, err)
	_, text = told(t, scanner(w.stream(w.of("done"), eve).Body))
	hasNot(t, text, "r-1&#34;")
	var streams []*bufio.Scanner
	status := http.StatusOK
	for status == http.StatusOK {
		require.Less(t, len(streams), 64)
		resp := w.stream("/jobs", eve)
		if status = resp.StatusCode; status == http.StatusOK {
			streams = append(streams, scanner(resp.Body))
		}
	}
	require.Equal(t, http.StatusTooManyRequests, status)
	require.GreaterOrEqual(t, len(streams), 8)
	_, text = told(t, scanner(w.stream("/jobs", ada).Body))
	has(t, text, "waiting")
	require.NoError(t, w.rt.Tokens().Revoke(t.Context(), "eve"))
	began := time.Now()
	for _, s := range streams {
		for s.Scan() { // to the end of the stream
		}
	}
	require.Less(t, time.Since(began), access.TokenLook+20*time.Second)
	require.Equal(t, http.StatusUnauthorized, w.stream("/jobs", eve).StatusCode)
}

// Eight who follow pages, one after another, of jobs with 1 MB of output hold little memory.
func TestFollowersHoldLittle(t *testing.T) {
	w := newSite(t)
	w.deploy("parcels")
	large := strings.Repeat("x", 900_000)
	var pages []string
	for n := range soak.Times(9, 60) {
		key := fmt.Sprintf("large-%d", n)
		_, err := w.rt.Start(t.Context(), "parcels", key, map[string]any{"items": []string{large}})
		require.NoError(t, err)
		pages = append(pages, key)
	}
	for n, key := range pages {
		w.ends(key)
		pages[n] = w.of(key)
	}
	pages[0], pages[1] = "/jobs", "/topics"
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithCancel(t.Context())
	made := make(chan string)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for at := n; ctx.Err() == nil; at += 8 { // what has ended is over at once: then the next one
				resp, err := http.DefaultClient.Do(w.request(http.MethodGet, "/live?page="+url.QueryEscape(pages[at%len(pages)]),
					nil).WithContext(ctx))
				if err != nil {
					continue
				}
				for lines := scanner(resp.Body); lines.Scan(); { // a line is cut where the context ends
					if name, is := strings.CutPrefix(lines.Text(), "event: "); is {
						select {
						case made <- name:
						case <-ctx.Done():
						}
					}
				}
				_ = resp.Body.Close()
			}
		})
	}
	var most uint64
	for range 2 * len(pages) {
		require.Contains(t, []string{"page", "over"}, devtest.Await(t, "an event", made))
		runtime.ReadMemStats(&now)
		most = max(most, now.HeapAlloc)
	}
	cancel()
	all.Wait()
	t.Logf("heap %d MiB before, at most %d MiB", before.HeapAlloc>>20, most>>20)
	require.Less(t, most, before.HeapAlloc+300<<20)
}

// O8: a form of which not all has come does nothing, and its page says so; a field that is given
// twice is no guess.
func TestO8FormsAreWhole(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	for _, page := range []string{"/dead", "/bulk", w.of("waiting") + "/interrupt"} {
		form := "reason=cut&act=interrupt&flow=order&id=1&verdict=retry"
		c, err := net.Dial("tcp", strings.TrimPrefix(w.page.URL, "http://"))
		require.NoError(t, err)
		_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", page, len(form)+9, form)
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, page)
		has(t, string(body), "nothing was done", page)
		a := w.post(page, url.Values{"reason": {"a", "b"}, "act": {"interrupt"}, "flow": {"order"}, "id": {"1"}, "verdict": {"retry"}})
		require.Equal(t, http.StatusBadRequest, a.StatusCode, page)
		has(t, a.Body, "given twice")
	}
	j, err := w.rt.Job(t.Context(), quipu.Job{Key: "waiting"})
	require.NoError(t, err)
	require.False(t, j.Ended)
	require.Equal(t, http.StatusBadRequest, w.do(w.request(http.MethodGet, "/jobs?flow=a&flow=b", nil)).StatusCode)
	require.Equal(t, http.StatusBadRequest, w.do(w.request(http.MethodGet, "/jobs?prefix=%00", nil)).StatusCode)
}
