package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/workers"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// held is a transport that holds each answer against the document, and each request that was
// taken.
type held struct{ t *testing.T }

const flows = `
flow: hello
version: "1"
input: {type: object, required: [name]}
activities:
  start: {type: trigger}
  step: {type: worker, topic: echo, input: "${ start.output.name }"}
output: {text: "${ step.output }"}
transitions: {start: [step]}
---
flow: bad
version: "1"
activities:
  start: {type: trigger}
  step: {type: worker, topic: fail, input: {code: 422, message: no such customer, data: {secret: 7}}, retry: {attempts: 1}}
transitions: {start: [step]}
---
flow: review
version: "1"
activities:
  start: {type: trigger}
  hook: {type: hook, signal: order.reviewed, key: "${ start.output.review }"}
output: {ok: "${ hook.output.ok }"}
transitions: {start: [hook]}
---
flow: charge
version: "1"
activities:
  start: {type: trigger}
  step: {type: worker, topic: cut}
output: {said: "${ step.output }"}
transitions: {start: [step]}
`

// site is a space that works, and its API on a server.
type site struct {
	t       *testing.T
	rt      *quipu.Runtime
	home    *world.World
	guard   *access.Guard
	handler http.Handler
	url     string
	tokens  map[access.Role]string
}

func newSite(t *testing.T, change ...func(*access.Config)) *site {
	t.Helper()
	reg := workers.New()
	workers.RegisterBuiltins(reg)
	workers.Handle(reg, "cut", func(ctx context.Context, _ any) (string, error) {
		return effects.Do(ctx, "call", func(context.Context) (string, error) { return "", errors.New("connection cut off") }, effects.Guarded)
	})
	quiet := slog.New(slog.DiscardHandler)
	home := world.New(t, "")
	cfg := home.Config()
	cfg.Workers, cfg.Logger = reg, quiet
	rt := home.Serve(cfg, strings.Split(flows, "---\n")...)
	w := &site{t: t, rt: rt, home: home, tokens: map[access.Role]string{}}
	for _, role := range access.Roles() {
		token, err := rt.Tokens().Create(t.Context(), "a "+string(role), role, 0)
		require.NoError(t, err)
		w.tokens[role] = token
	}
	guarded := access.Config{Tokens: rt.Tokens().Who, Logger: quiet}
	for _, f := range change {
		f(&guarded)
	}
	w.guard = access.New(guarded)
	w.handler = w.guard.Wrap(api.New(rt, api.Config{Guard: w.guard, Logger: quiet}))
	server := httptest.NewServer(w.handler)
	w.url = server.URL + api.Path
	t.Cleanup(server.Close)
	return w
}

// reply is an answer of the API.
type reply struct {
	status int
	header http.Header
	body   string
}

// ask sends a request as somebody with a role. headers are pairs of name and value.
func (w *site) ask(role access.Role, method, path, body string, headers ...string) reply {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	require.NoError(w.t, err)
	r.Header.Set("Authorization", "Bearer "+w.tokens[role])
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{Transport: held{w.t}, Timeout: 2 * time.Minute}).Do(r)
	require.NoError(w.t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	_ = resp.Body.Close()
	return reply{resp.StatusCode, resp.Header, string(text)}
}

// is wants a status, and decodes the answer.
func (w *site) is(r reply, status int, to any) {
	w.t.Helper()
	require.Equal(w.t, status, r.status, r.body)
	require.NoError(w.t, json.Unmarshal([]byte(r.body), to), r.body)
}

// refused wants a problem.
func (w *site) refused(r reply, status int, code string) access.Problem {
	w.t.Helper()
	var p access.Problem
	w.is(r, status, &p)
	require.Equal(w.t, "application/problem+json", r.header.Get("Content-Type"))
	require.Equal(w.t, code, p.Code, r.body)
	return p
}

// ended waits for the end of a job as a client.
func (w *site) ended(key string) api.Outcome {
	w.t.Helper()
	var out api.Outcome
	w.is(w.ask(access.Client, http.MethodGet, "/jobs/"+key+"/wait?timeout=60s", ""), http.StatusOK, &out)
	require.True(w.t, out.Ended)
	return out
}
