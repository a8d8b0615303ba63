package access

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// asked is a request to a guarded server, and what it answers.
type asked struct {
	method, host, from string
	header             http.Header
	body               string
}

// world is a guard before a handler that says who asks, and needs role.
func world(t *testing.T, cfg Config, role Role) func(a asked) (*httptest.ResponseRecorder, Problem) {
	t.Helper()
	g := New(cfg)
	h := g.Wrap(g.Need(role, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			NewProblem(http.StatusRequestEntityTooLarge, "too_large", err.Error()).Write(w)
			return
		}
		_ = json.NewEncoder(w).Encode(Of(r.Context()))
	})))
	return func(a asked) (*httptest.ResponseRecorder, Problem) {
		if a.method == "" {
			a.method = http.MethodGet
		}
		r := httptest.NewRequest(a.method, "/x", strings.NewReader(a.body))
		r.Host, r.Header, r.RemoteAddr = a.host, a.header, "192.0.2.7:1234"
		if a.from != "" {
			r.RemoteAddr = a.from
		}
		if r.Header == nil {
			r.Header = http.Header{}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var p Problem
		if w.Code != http.StatusOK {
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
			require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
			require.Equal(t, w.Code, p.Status)
		}
		return w, p
	}
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// tokens holds one token.
func tokens(token string, whose Who) func(context.Context, string) (Who, bool, error) {
	return func(_ context.Context, got string) (Who, bool, error) { return whose, got == token, nil }
}

var quiet = slog.New(slog.DiscardHandler)

// O11: with the zero configuration nobody gets in.
func TestNobodyGetsIn(t *testing.T) {
	t.Parallel()
	ask := world(t, Config{Logger: quiet}, Viewer)
	for _, h := range []http.Header{nil, header("Authorization", "Bearer "+NewToken()), header("X-Forwarded-User", "ada"), header("Authorization", "Bearer ")} {
		w, p := ask(asked{host: "localhost", header: h})
		require.Equal(t, http.StatusUnauthorized, w.Code)
		require.Equal(t, CodeUnauthenticated, p.Code)
		require.Len(t, w.Header().Values("WWW-Authenticate"), 2)
	}
}

// O11: on loopback nobody is asked, unless a name server led a browser here under another name.
func TestLoopbackAndRebinding(t *testing.T) {
	t.Parallel()
	ask := world(t, Config{Local: &Who{Name: "ada", Role: Operator}, Logger: quiet}, Operator)
	for _, host := range []string{"localhost", "LOCALHOST:8080", "127.0.0.1:8080", "127.1.2.3", "[::1]:8080", "[::1]"} {
		w, _ := ask(asked{host: host})
		require.Equal(t, http.StatusOK, w.Code, host)
		require.JSONEq(t, `{"Name": "ada", "Role": "operator", "Payloads": true}`, w.Body.String())
	}
	for _, host := range []string{"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "192.0.2.1", "", "0.0.0.0:80", "[::]:1", "127.0.0.1.nip.io", "2130706433"} {
		w, p := ask(asked{host: host})
		require.Equal(t, http.StatusMisdirectedRequest, w.Code, host)
		require.Equal(t, CodeWrongHost, p.Code)
	}
	w, _ := ask(asked{host: "localhost", header: header("Authorization", "Bearer "+NewToken())})
	require.Equal(t, http.StatusUnauthorized, w.Code, "a token that does not hold is not looked over")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	token := NewToken()
	cfg := Config{Tokens: tokens(token, Who{Name: "shop", Role: Client}), Logger: quiet}
	ask := world(t, cfg, Client)
	basic := base64.StdEncoding.EncodeToString([]byte("anybody:" + token))
	for _, h := range []string{"Bearer " + token, "bearer " + token, "Basic " + basic} {
		w, _ := ask(asked{host: "quipu.example", header: header("Authorization", h)})
		require.Equal(t, http.StatusOK, w.Code, h)
		require.JSONEq(t, `{"Name": "shop", "Role": "client", "Payloads": true}`, w.Body.String())
	}
	for _, h := range []string{"Bearer " + NewToken(), "Bearer " + token + "x", token, "Token " + token, "Bearer shop", "Basic " + token} {
		w, p := ask(asked{host: "quipu.example", header: header("Authorization", h)})
		require.Equal(t, http.StatusUnauthorized, w.Code, h)
		require.Equal(t, CodeUnauthenticated, p.Code)
	}
	w, p := world(t, cfg, Operator)(asked{header: header("Authorization", "Bearer "+token)})
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Equal(t, CodeForbidden, p.Code)
	require.Contains(t, p.Detail, "shop has client")

	cfg.Tokens = func(context.Context, string) (Who, bool, error) {
		return Who{}, false, errors.New("the password of the database is secret")
	}
	w, p = world(t, cfg, Viewer)(asked{header: header("Authorization", "Bearer "+token)})
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.NotContains(t, p.Detail, "secret")
}

// O11: a header of the proxy counts only from the proxy.
func TestProxy(t *testing.T) {
	t.Parallel()
	token := NewToken()
	cfg := Config{
		Proxy:  &Proxy{From: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Header: "X-User", RoleHeader: "X-Role"},
		Tokens: tokens(token, Who{Name: "shop", Role: Client}), Logger: quiet,
	}
	ask := world(t, cfg, Viewer)
	w, _ := ask(asked{from: "10.1.2.3:99", header: header("X-User", "grace", "X-Role", "operator", "Authorization", "Basic for the proxy")})
	require.JSONEq(t, `{"Name": "grace", "Role": "operator", "Payloads": true}`, w.Body.String())
	w, _ = ask(asked{from: "[::ffff:10.1.2.3]:99", header: header("X-User", "grace")})
	require.JSONEq(t, `{"Name": "grace", "Role": "viewer", "Payloads": false}`, w.Body.String())
	w, _ = ask(asked{from: "10.1.2.3:99", header: header("Authorization", "Bearer "+token)})
	require.Contains(t, w.Body.String(), "shop", "a program may come by the proxy with a token")
	for from, h := range map[string]http.Header{
		"10.2.0.1:99":   header("X-User", "grace", "X-Role", "operator"),
		"10.1.0.1:99":   header("X-Role", "operator"),
		"10.1.0.2:99":   header("X-User", "grace", "X-Role", "root"),
		"10.1.0.3:99":   header("X-User", "gr\tace"),
		"no address":    header("X-User", "grace"),
		"192.0.2.1:443": nil,
	} {
		w, _ := ask(asked{from: from, header: h})
		require.Equal(t, http.StatusUnauthorized, w.Code, from)
	}
	cfg.ViewersSeePayloads = true
	w, _ = world(t, cfg, Viewer)(asked{from: "10.1.2.3:99", header: header("X-User", "grace")})
	require.Contains(t, w.Body.String(), `"Payloads":true`)
}

// O11: a page of another site cannot make a browser write here.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	ask := world(t, Config{Local: &Who{Name: "ada", Role: Operator}, Logger: quiet}, Operator)
	for _, h := range []http.Header{
		header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Site", "same-site"), header("Origin", "https://evil.example"), header("Origin", "null"),
		header("Origin", "http://localhost:9999"),
	} {
		w, p := ask(asked{method: http.MethodPost, host: "localhost:8080", header: h})
		require.Equal(t, http.StatusForbidden, w.Code, h)
		require.Equal(t, CodeCrossOrigin, p.Code)
	}
	for _, h := range []http.Header{nil, header("Sec-Fetch-Site", "same-origin"), header("Origin", "http://localhost:8080")} {
		w, _ := ask(asked{method: http.MethodPost, host: "localhost:8080", header: h})
		require.Equal(t, http.StatusOK, w.Code, h)
	}
}

func TestBoundsAndHeaders(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := Config{
		Local: &Who{Name: "ada", Role: Operator}, TLS: true, MaxBody: 10, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	ask := world(t, cfg, Viewer)
	w, _ := ask(asked{method: http.MethodPost, host: "localhost", body: "0123456789"})
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, log.String(), "who=ada", "a write says who in the log")
	for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "Strict-Transport-Security", "Cache-Control"} {
		require.NotEmpty(t, w.Header().Get(name), name)
	}
	require.NotContains(t, w.Header().Get("Content-Security-Policy"), "unsafe")
	w, _ = ask(asked{method: http.MethodPost, host: "localhost", body: "0123456789+"})
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
}

// O11: one caller cannot take all places, and all together are bounded.
func TestPlaces(t *testing.T) {
	t.Parallel()
	open, inside := make(chan struct{}), make(chan struct{}, MaxRequests)
	g := New(Config{Tokens: func(_ context.Context, token string) (Who, bool, error) {
		return Who{Name: token, Role: Viewer}, true, nil
	}, Logger: quiet})
	h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside <- struct{}{}; <-open }))
	ask := func(token string) int {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+token)
		h.ServeHTTP(w, r)
		return w.Code
	}
	var all sync.WaitGroup
	greedy := NewToken()
	for n := range MaxRequests {
		token := greedy
		if n%MaxOfOne == 0 {
			greedy = NewToken()
			token = greedy
		}
		all.Go(func() { ask(token) })
		<-inside
		if n == MaxOfOne-1 {
			require.Equal(t, http.StatusTooManyRequests, ask(greedy))
		}
	}
	require.Equal(t, http.StatusServiceUnavailable, ask(NewToken()))
	close(open)
	all.Wait()
	require.Empty(t, g.of)
	require.Zero(t, g.all)
	require.Equal(t, http.StatusOK, ask(greedy))
}

func TestNames(t *testing.T) {
	t.Parallel()
	require.NoError(t, CheckName("Ada Lovelace"))
	for _, name := range []string{"", strings.Repeat("x", MaxName+1), "a\nb", "\xff"} {
		require.Error(t, CheckName(name))
	}
	require.False(t, Role("").Covers(""), "nobody may do nothing")
	require.False(t, Who{}.Role.Covers(Viewer))
	require.True(t, Operator.Covers(Viewer))
	require.False(t, Viewer.Covers(Client))
	require.Equal(t, Who{}, Of(t.Context()))
}
