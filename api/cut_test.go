package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal"
)

// raw sends bytes on a connection of its own, ends its side of it if half is set, and reads the
// answer.
func (w *site) raw(server *httptest.Server, half bool, text string) reply {
	w.t.Helper()
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(w.t, err)
	defer func() { _ = c.Close() }()
	require.NoError(w.t, c.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(c, text)
	require.NoError(w.t, err)
	if half {
		require.NoError(w.t, c.(*net.TCPConn).CloseWrite())
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(w.t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	require.NoError(w.t, resp.Body.Close())
	return reply{resp.StatusCode, resp.Header, string(body)}
}

// O10: a body of which not all has come is never answered with success, on any route that has one,
// and nothing is done.
func TestO10BodyIsCut(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	servers := map[bool]*httptest.Server{}
	for half, patience := range map[bool]time.Duration{true: time.Minute, false: 500 * time.Millisecond} {
		server := httptest.NewUnstartedServer(w.handler)
		server.Config.ReadTimeout = patience
		server.Start()
		defer server.Close()
		servers[half] = server
	}
	var s api.Started
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "review", "key": "open", "input": {"review": "open"}}`), http.StatusCreated, &s)
	for path, body := range map[string]string{
		"/jobs":                         `{"flow": "hello", "key": "cut", "input": {"name": "Ada"}}`,
		"/jobs/" + s.Job + "/interrupt": `{"reason": "cut"}`,
		"/jobs/" + s.Job + "/resume":    `{"reason": "cut"}`,
		"/jobs/" + s.Job + "/fork":      `{"at": 1, "key": "cut"}`,
		"/flows":                        `{"definition": "{flow: cut, version: '1', activities: {start: {type: trigger}}}"}`,
		"/flows/hello/1/activate":       `{}`,
		"/signals":                      `{"topic": "order.reviewed", "key": "open", "payload": {"ok": true}}`,
		"/dead-letters/7/decision":      `{"verdict": "retry", "reason": "cut"}`,
		"/jobs/" + journal.JobID{1}.String() + "/interrupt": `{}`,
		"/dead-letters/few/decision":                        `{"verdict": "retry"}`,
	} {
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: quipu\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n", api.Path+path, w.tokens[access.Operator])
		chunk := fmt.Sprintf("%x\r\n%s\r\n", len(body), body)
		for name, text := range map[string]string{
			"nothing":         fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)),
			"a part":          fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body[:len(body)/2]),
			"one byte less":   fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body)+1, body),
			"within a chunk":  "Transfer-Encoding: chunked\r\n\r\n" + chunk[:len(chunk)-4],
			"without its end": "Transfer-Encoding: chunked\r\n\r\n" + chunk,
		} {
			for _, half := range []bool{true, false} {
				r := w.raw(servers[half], half, head+text)
				var p access.Problem
				w.is(r, r.status, &p)
				require.Equal(t, r.status, p.Status)
				switch {
				case path == "/dead-letters/few/decision":
					require.Equal(t, api.CodeMalformed, p.Code)
				case half:
					require.Equal(t, api.CodeIncomplete, p.Code, "%s, %s", path, name)
					require.Equal(t, http.StatusBadRequest, p.Status)
				default:
					require.Equal(t, api.CodeSlow, p.Code, "%s, %s", path, name)
					require.Equal(t, http.StatusRequestTimeout, p.Status)
				}
			}
		}
	}
	w.refused(w.ask(access.Client, http.MethodGet, "/jobs/cut", ""), http.StatusNotFound, api.CodeNotFound)
	job, err := w.rt.Job(t.Context(), quipu.Job{Key: "open"})
	require.NoError(t, err)
	require.False(t, job.Ended)

	// Who ends his side after all of the body is answered, too: by what was done, or that nobody knows.
	body := `{"flow": "hello", "key": "half", "input": {"name": "Ada"}}`
	r := w.raw(servers[true], true, fmt.Sprintf("POST %s/jobs HTTP/1.1\r\nHost: quipu\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		api.Path, w.tokens[access.Client], len(body), body))
	require.Contains(t, []int{http.StatusCreated, http.StatusServiceUnavailable}, r.status)
	require.NotEmpty(t, r.body)
	r = w.raw(servers[true], true, fmt.Sprintf("GET %s/jobs/open/wait HTTP/1.1\r\nHost: quipu\r\nAuthorization: Bearer %s\r\n\r\n", api.Path, w.tokens[access.Client]))
	w.refused(r, http.StatusBadRequest, api.CodeIncomplete)
}

// O10: a wait that a server ends because it stops, or because its token does not hold any more, is
// told so; a stream ends.
func TestO10WaitsThatEnd(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	base, stop := context.WithCancelCause(t.Context())
	server := httptest.NewUnstartedServer(w.handler)
	server.Config.BaseContext = func(net.Listener) context.Context { return base }
	server.Start()
	defer server.Close()
	var s api.Started
	w.is(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "review", "key": "open", "input": {"review": "open"}}`), http.StatusCreated, &s)
	wait := func(token, accept string) (begun <-chan struct{}, answered <-chan reply) {
		began, answers := make(chan struct{}), make(chan reply, 1)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+api.Path+"/jobs/open/wait?timeout=60s", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept", accept)
		go func() {
			defer close(answers)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				return
			}
			close(began)
			text, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err == nil {
				answers <- reply{resp.StatusCode, resp.Header, string(text)}
			}
		}()
		return began, answers
	}
	token, err := w.rt.Tokens().Create(t.Context(), "leaves", access.Viewer, 0)
	require.NoError(t, err)
	begun, stream := wait(token, "text/event-stream")
	<-begun
	_, poll := wait(token, "application/json")
	require.NoError(t, w.rt.Tokens().Revoke(t.Context(), "leaves"))
	revoked := time.Now()
	w.refused(<-poll, http.StatusUnauthorized, access.CodeUnauthenticated)
	r := <-stream
	require.Equal(t, http.StatusOK, r.status)
	require.NotContains(t, r.body, "event: ended")
	require.Less(t, time.Since(revoked), access.TokenLook+10*time.Second)

	begun, stream = wait(w.tokens[access.Viewer], "text/event-stream")
	<-begun
	_, poll = wait(w.tokens[access.Client], "application/json")
	stop(access.ErrStopped)
	w.refused(<-poll, http.StatusServiceUnavailable, access.CodeUnavailable)
	require.Equal(t, http.StatusOK, (<-stream).status)
}

// O10: what has no one meaning is refused, and its name and place are told: a member that comes
// twice or in other letters, a parameter or a header that is given twice, what no text may have.
func TestO10OneMeaning(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	for body, says := range map[string]string{
		`{"flow": "hello", "key": "x2", "key": "x3", "input": {"name": "Ada"}}`:              "$.key (byte 38): the member comes twice",
		`{"flow": "hello", "key": "x2", "\u006bey": "x3"}`:                                   "$.key",
		`{"Flow": "hello", "key": "x", "input": {"name": "Ada"}}`:                            "$.Flow (byte 9): there is no such member",
		`{"FLOW": "hello", "flow": "hello", "key": "x"}`:                                     "$.FLOW",
		`{"flow": "hello", "key": "x", "input": {"name": "Ada", "name": "Bob"}}`:             `$.input (byte 56): key "name" comes twice`,
		`{"flow": "hello", "key": "x", "input": {"name": "\u0000"}}`:                         "U+0000",
		"{\"flow\": \"hello\", \"key\": \"x\xff\"}":                                          "invalid UTF-8",
		`{"flow": "hello", "key": null, "input": {"name": "Ada"}}`:                           "$.key",
		`{"flow": "hello", "key": "x", "input": {"name": "Ada"}}x`:                           "more text",
		`{"flow": "hello", "key": "x", "input": {"name": "Ada"}, "tags": ["a"], "tags": []}`: "$.tags",
	} {
		p := w.refused(w.ask(access.Client, http.MethodPost, "/jobs", body), http.StatusBadRequest, api.CodeMalformed)
		require.Contains(t, p.Detail, says, body)
	}
	for path, body := range map[string]string{
		"/signals": `{"topic": "order.reviewed", "key": "x", "Payload": 1}`, "/jobs/x/interrupt": `{"Reason": "x"}`,
		"/jobs/x/resume":           `{"From": "x"}`,
		"/dead-letters/1/decision": `{"verdict": "retry", "verdict": "done"}`,
		"/jobs?flow=hello":         `{"flow": "hello", "key": "x", "input": {"name": "Ada"}}`,
		"/jobs/%00/interrupt":      `{}`,
		"/jobs/%ff/interrupt":      `{}`,
	} {
		w.refused(w.ask(access.Operator, http.MethodPost, path, body), http.StatusBadRequest, api.CodeMalformed)
	}
	for _, path := range []string{
		"/jobs?flow=a&flow=b", "/jobs?limit=1&limit=2", "/jobs?prefix=%00", "/jobs?prefix=%ff", "/jobs?" + strings.Repeat("tag=a&", 21) + "tag=a", "/jobs/x/wait?timeout=1s&timeout=2s",
		"/jobs/x/verify?a=1", "/jobs/x/export?a=1", "/flows?a=1", "/openapi.json?a=1", "/jobs/%00", "/dead-letters?job=a&job=b",
	} {
		w.refused(w.ask(access.Operator, http.MethodGet, path, ""), http.StatusBadRequest, api.CodeMalformed)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/jobs", strings.NewReader(`{"flow": "hello", "input": {"name": "Ada"}}`))
	require.NoError(t, err)
	r.Header = http.Header{"Authorization": {"Bearer " + w.tokens[access.Client]}, "Content-Type": {"application/json"}, "Idempotency-Key": {"a", "b"}}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	w.refused(w.ask(access.Client, http.MethodPost, "/jobs", `{"flow": "hello", "input": {"name": "Ada"}}`, "Idempotency-Key", `"a`), http.StatusBadRequest, api.CodeMalformed)
	var page api.Page
	w.is(w.ask(access.Viewer, http.MethodGet, "/jobs", ""), http.StatusOK, &page)
	require.Empty(t, page.Jobs, "nothing was started")
}

// A success without an answer is none, whatever stands between.
func TestClientWantsAnAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	c, err := api.NewClient(server.URL, "")
	require.NoError(t, err)
	require.Error(t, c.Decide(t.Context(), quipu.Decision{DeadLetter: 1, Verdict: quipu.Retry}))
	_, err = c.Start(t.Context(), quipu.StartRequest{Flow: "hello", Input: json.RawMessage("{}")})
	require.Error(t, err)
	_, err = c.Signal(t.Context(), api.SignalRequest{Topic: "a", Key: "k"}, "")
	require.Error(t, err)
}
