package access

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// O11: what a page of another site makes a browser fetch is refused, reads included; a link that
// somebody follows is not, and neither is a program.
func TestO11CrossSiteReads(t *testing.T) {
	t.Parallel()
	ask := world(t, Config{Local: &Who{Name: "ada", Role: Operator}, Logger: quiet}, Operator)
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	refused := map[string]asked{
		"image":             {header: header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image")},
		"script's fetch":    {header: header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty")},
		"other port here":   {header: header("Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "empty")},
		"frame":             {header: header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe")},
		"object":            {header: header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "object")},
		"no word of mode":   {header: header("Sec-Fetch-Site", "cross-site")},
		"unknown site":      {header: header("Sec-Fetch-Site", "elsewhere")},
		"fetched ahead":     {header: header(append(link, "Sec-Purpose", "prefetch;prerender")...)},
		"form":              {method: http.MethodPost, header: header(link...)},
		"question of CORS":  {method: http.MethodOptions, header: header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Origin", "https://evil.example")},
		"in clear, a fetch": {header: header("Origin", "http://evil.example")},
		"in clear, no site": {header: header("Origin", "null")},
		"in clear, a port":  {header: header("Origin", "http://localhost:9999")},
	}
	for name, a := range refused {
		a.host = "localhost:8080"
		w, p := ask(a)
		require.Equal(t, http.StatusForbidden, w.Code, name)
		require.Equal(t, CodeCrossOrigin, p.Code, name)
	}
	for name, h := range map[string]http.Header{
		"program": nil, "link": header(link...), "typed": header("Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"),
		"own page": header("Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"), "in clear, own page": header("Origin", "http://localhost:8080"),
	} {
		w, _ := ask(asked{host: "localhost:8080", header: h})
		require.Equal(t, http.StatusOK, w.Code, name)
	}
}

// Of many refused requests there are few lines, each of a bounded length, and each is counted.
func TestRefusalsAreFewLines(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	var counted atomic.Int64
	g := New(Config{Logger: slog.New(slog.NewTextHandler(&lines, nil)), Refused: func(code string) {
		require.Contains(t, Codes(), code)
		counted.Add(1)
	}})
	h := g.Wrap(http.NotFoundHandler())
	const many = 10_000
	long := "/" + strings.Repeat("x", 60<<10)
	plain, cross := httptest.NewRequest(http.MethodGet, long, nil), httptest.NewRequest(http.MethodGet, long, nil)
	cross.Header.Set("Sec-Fetch-Site", "cross-site")
	for range many / 2 {
		h.ServeHTTP(httptest.NewRecorder(), plain)
		h.ServeHTTP(httptest.NewRecorder(), cross)
	}
	require.EqualValues(t, many, counted.Load())
	require.LessOrEqual(t, strings.Count(lines.String(), "\n"), 2*3, "a line of each code, and again when ten seconds are over")
	require.Contains(t, lines.String(), "code=cross_origin since_last=1 from=192.0.2.1:1234 method=GET path=/xxx")
	require.Less(t, lines.Len(), 6*600)

	lines.Reset()
	s := Server(h, slog.New(slog.NewTextHandler(&lines, nil)))
	for range many {
		s.ErrorLog.Print("http: TLS handshake error from " + long)
	}
	require.LessOrEqual(t, strings.Count(lines.String(), "\n"), 3)
	require.Less(t, lines.Len(), 3*(maxFault+100))
}

// The line that is said says how many were not.
func TestRefusalsSinceTheLastLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s sparse
		since, say := s.count("a")
		require.True(t, say && since == 1)
		for range 7 {
			_, say = s.count("a")
			require.False(t, say)
		}
		_, say = s.count("b")
		require.True(t, say, "one kind does not silence another")
		time.Sleep(sayEvery)
		since, say = s.count("a")
		require.True(t, say)
		require.EqualValues(t, 8, since)
	})
}

// A database that is silent is told of in seconds, also to a caller that has its time.
func TestO11TokenOfAnAbsentDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Logger: quiet, Tokens: func(ctx context.Context, _ string) (Who, bool, error) {
			<-ctx.Done()
			return Who{}, false, ctx.Err()
		}})
		h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("nobody knows who asks") }))
		r, w := httptest.NewRequest(http.MethodGet, "/jobs", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+NewToken())
		began := time.Now()
		h.ServeHTTP(w, r)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Contains(t, w.Body.String(), "the database of the space does not answer")
	})
}

// O11: a request that lasts ends when its token is revoked, and the token of all its requests is
// looked up once in TokenLook. A database that is away ends nothing.
func TestO11TokenEndsRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const streams = 50
		var looks atomic.Int64
		var state atomic.Int32 // 0: it holds; 1: nobody knows; 2: it was revoked
		token := NewToken()
		g := New(Config{Logger: quiet, Tokens: func(context.Context, string) (Who, bool, error) {
			looks.Add(1)
			if state.Load() == 1 {
				return Who{}, false, errors.New("away")
			}
			return Who{Name: "shop", Role: Client}, state.Load() == 0, nil
		}})
		h := g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			var p *Problem
			require.ErrorAs(t, context.Cause(r.Context()), &p)
			p.Write(w)
		}))
		var all sync.WaitGroup
		ended := make(chan int, streams)
		for range streams {
			all.Go(func() {
				r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
				r.Header.Set("Authorization", "Bearer "+token)
				h.ServeHTTP(w, r)
				ended <- w.Code
			})
		}
		synctest.Wait()
		require.EqualValues(t, streams, looks.Load())
		time.Sleep(10 * TokenLook)
		synctest.Wait()
		require.EqualValues(t, streams+10, looks.Load(), "one for all of them")
		state.Store(1)
		time.Sleep(10 * TokenLook)
		require.Empty(t, ended)
		state.Store(2)
		time.Sleep(TokenLook)
		all.Wait()
		for range streams {
			require.Equal(t, http.StatusUnauthorized, <-ended)
		}
		require.Empty(t, g.watches)
		n := looks.Load()
		time.Sleep(10 * TokenLook)
		require.Equal(t, n, looks.Load(), "nobody is left to look for")
	})
}

// The bodies of all requests under way are bounded, and what reads whole journals has few places.
func TestBodiesAndLongReads(t *testing.T) {
	t.Parallel()
	g := New(Config{Local: &Who{Name: "ada", Role: Operator}, Logger: quiet})
	open, inside := make(chan struct{}), make(chan struct{}, MaxRequests)
	wait := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside <- struct{}{}; <-open })
	ask := func(h http.Handler, size int64) int {
		r, w := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")), httptest.NewRecorder()
		r.Host, r.ContentLength = "localhost", size
		h.ServeHTTP(w, r)
		return w.Code
	}
	var all sync.WaitGroup
	held := g.Wrap(wait)
	for n := range MaxBodies / DefaultMaxBody {
		size := int64(DefaultMaxBody) << n // what is over the limit of one is not read
		if n%2 == 0 {
			size = -1
		}
		all.Go(func() { ask(held, size) })
		<-inside
	}
	require.Equal(t, http.StatusServiceUnavailable, ask(held, 1))
	few := g.Wrap(g.Few(wait))
	for range MaxLongOfOne {
		all.Go(func() { ask(few, 0) })
		<-inside
	}
	require.Equal(t, http.StatusTooManyRequests, ask(few, 0))
	close(open)
	all.Wait()
	require.Zero(t, g.bodies.Load())
	require.Equal(t, http.StatusOK, ask(few, 1))
}

// O11: a header that says who asks and comes twice is no guess.
func TestO11HeadersGivenTwice(t *testing.T) {
	t.Parallel()
	token := NewToken()
	ask := world(t, Config{Tokens: tokens(token, Who{Name: "shop", Role: Client}), Logger: quiet}, Viewer)
	h := header("Authorization", "Bearer "+token)
	h.Add("Authorization", "Bearer "+NewToken())
	w, p := ask(asked{header: h})
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Contains(t, p.Detail, "given twice")
}

// Who looks at the console is refused by a page, a program by a problem.
func TestRefusalsHaveTheFormOfTheirReader(t *testing.T) {
	t.Parallel()
	h := New(Config{Logger: quiet}).Wrap(http.NotFoundHandler())
	for path, want := range map[string]string{"/jobs": "text/html; charset=utf-8", "/api/v1/jobs": "application/problem+json"} {
		r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
		r.Header.Set("Accept", "text/html,*/*")
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusUnauthorized, w.Code)
		require.Equal(t, want, w.Header().Get("Content-Type"))
		require.Contains(t, w.Body.String(), CodeUnauthenticated)
	}
}

// What a refused request costs, with a path of 60 kB, beside one that is let in.
func BenchmarkRefused(b *testing.B) {
	g := New(Config{
		Local: &Who{Name: "ada", Role: Operator}, Logger: quiet,
		Tokens: func(context.Context, string) (Who, bool, error) { return Who{}, false, nil },
	})
	h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, authorization := range map[string]string{"let in": "", "unknown token": "Bearer " + NewToken()} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, "/"+strings.Repeat("x", 60<<10), nil)
			r.Host = "localhost"
			if authorization != "" {
				r.Header.Set("Authorization", authorization)
			}
			for b.Loop() {
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
