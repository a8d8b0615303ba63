package work

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// newReceiver is a mirror that answers in many ways.
func newReceiver(t *testing.T) *mirror {
	mux := http.NewServeMux()
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, q *http.Request) {
		code, _ := strconv.Atoi(q.PathValue("code"))
		if after := q.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"b":1, "a":2}`)
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		w.Header().Set("Content-Type", "text/plain")
		_, _ = fmt.Fprintf(w, "%s %s %s %s", q.Method, q.Header.Get("Content-Type"), q.Header.Get("X-A"), body)
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", MaxHTTPBody+1))
	})
	mux.HandleFunc("/hops/{n}", func(w http.ResponseWriter, q *http.Request) {
		if n, _ := strconv.Atoi(q.PathValue("n")); n > 0 {
			http.Redirect(w, q, fmt.Sprint("/hops/", n-1), http.StatusFound)
		}
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "/loop", http.StatusFound) })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "/status/200", http.StatusTemporaryRedirect)
	})
	return newMirror(t, mux.ServeHTTP)
}

// builtinHouse serves the built-in handlers, as Register does.
func builtinHouse(t *testing.T, b ...workers.Builtins) *house {
	h := newHouse(t)
	b = append(b, workers.Builtins{})
	reach, err := newReach(b[0].HTTPAllow, b[0].HTTPDeny)
	require.NoError(t, err)
	reach.own = b[0].HTTPOwn
	outside := newHTTPTransport(reach)
	t.Cleanup(outside.CloseIdleConnections)
	registerBuiltins(h.reg, b[0], outside)
	h.open()
	return h
}

func TestBuiltinHTTPStatuses(t *testing.T) {
	t.Parallel()
	rc := newReceiver(t)
	h := builtinHouse(t)
	const terminal, failed = journal.ResponseTerminal, journal.ResponseFailedAttempt
	for i, c := range []struct {
		method, path string
		kind         journal.ResponseKind
		code         int
		after        int64
	}{
		{"GET", "/status/200", terminal, 200, 0},
		{"POST", "/status/201", terminal, 200, 0},
		{"GET", "/status/404", terminal, 404, 0},
		{"POST", "/status/402", terminal, 402, 0},
		{"GET", "/status/408", failed, 408, 0},
		{"POST", "/status/429?after=7", failed, 429, 7000},
		{"GET", "/status/503?after=2", failed, 503, 2000},
		{"POST", "/status/500", failed, 500, 0},
		{"POST", "/status/503?after=99999999", failed, 503, MaxRetryAfter.Milliseconds()},
		{"POST", "/moved", terminal, 502, 0},
		{"GET", "/moved", terminal, 200, 0},
		{"GET", "/status/999", failed, 502, 0},
		{"POST", "/status/600", failed, 502, 0},
		{"GET", "/loop", failed, 500, 0},
		{"GET", fmt.Sprint("/hops/", MaxRedirects), terminal, 200, 0},
		{"GET", fmt.Sprint("/hops/", MaxRedirects+1), failed, 500, 0},
		{"GET", "/big", terminal, 502, 0},
		{"POST", "/big", terminal, 502, 0},
	} {
		name := c.method + " " + c.path
		r := h.one(ask("http", byte(i), fmt.Sprintf(`{"method":%q,"url":%q}`, c.method, rc.URL+c.path)))
		require.Equal(t, c.kind, r.Kind, name)
		require.Equal(t, c.code, r.Code, name)
		require.Equal(t, c.after, r.RetryAfterMS, name)
	}
}

// What is sent and what comes back. Every attempt of a call that is an effect has one key.
func TestBuiltinHTTPOutput(t *testing.T) {
	t.Parallel()
	rc := newReceiver(t)
	h := builtinHouse(t)
	call := func(n byte, input string) HTTPResponse { return output(t, h.one(ask("http", n, input)).Output) }
	out := call(1, fmt.Sprintf(`{"method":"post","url":%q}`, rc.URL+"/status/201"))
	require.Equal(t, 201, out.Status)
	require.JSONEq(t, `{"a":2,"b":1}`, string(out.Body))
	require.Equal(t, "application/json", out.Headers["Content-Type"])
	out = call(2, fmt.Sprintf(`{"method":"PUT","url":%q,"headers":{"x-a":"v"},"body":{"n":1}}`, rc.URL+"/echo"))
	require.Equal(t, `"PUT application/json v {\"n\":1}"`, string(out.Body))
	out = call(3, fmt.Sprintf(`{"method":"PUT","url":%q,"headers":{"content-type":"text/csv"},"body":"a,b"}`, rc.URL+"/echo"))
	require.Equal(t, `"PUT text/csv  a,b"`, string(out.Body))
	r := h.one(ask("http", 4, fmt.Sprintf(`{"url":%q}`, rc.URL+"/status/404")))
	require.Equal(t, 404, output(t, r.Error.Data).Status, "the answer is the error's data")

	rc.got = nil
	q := ask("http", 5, fmt.Sprintf(`{"method":"POST","url":%q}`, rc.URL+"/status/503"))
	h.one(q)
	h.store.Turn(guid(t, q))
	q.Turn, q.Attempt = 2, 2
	h.send(q, 2)
	h.answer()
	call(6, fmt.Sprintf(`{"url":%q}`, rc.URL+"/status/200"))
	var keys []string
	for _, q := range rc.got {
		keys = append(keys, q.Header.Get("Idempotency-Key"))
	}
	require.Equal(t, []string{keys[0], keys[0], ""}, keys, "a GET is no effect")
	require.Len(t, keys[0], 64)
}

func TestBuiltinEchoSleepFail(t *testing.T) {
	t.Parallel()
	h := builtinHouse(t)
	require.Equal(t, `{"a":1}`, string(h.one(ask("echo", 1, `{"a":1}`)).Output))
	began := time.Now()
	require.Equal(t, `{"for":"30ms"}`, string(h.one(ask("sleep", 2, `{"for":"30ms"}`)).Output))
	require.GreaterOrEqual(t, time.Since(began), 30*time.Millisecond)
	require.Equal(t, 400, h.one(ask("sleep", 3, `{"for":"soon"}`)).Code)
	require.Equal(t, 408, h.late(ask("sleep", 4, `{"for":"1h"}`)).Code)

	r := h.one(ask("fail", 5, `{"code":418,"message":"tea","data":{"pot":1}}`))
	failedWith(t, r, journal.ResponseTerminal, 418, wire.ClassBusiness, "tea")
	require.Equal(t, `{"pot":1}`, string(r.Error.Data))
	for attempt := range byte(3) {
		q := ask("fail", 10+attempt, `{"times":2}`)
		if q.Attempt = int(attempt) + 1; attempt < 2 {
			require.Equal(t, journal.ResponseFailedAttempt, h.one(q).Kind)
		} else {
			require.Equal(t, `{"times":2}`, string(h.one(q).Output))
		}
	}
}
