package api

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/inspect"
)

// Path is where the API stands on its server.
const Path = "/api/v1"

// Limits of calls that neither wait nor stream.
const (
	callWait = 30 * time.Second
	longWait = 10 * time.Minute // of one that reads a whole journal
)

// Config configures the API.
type Config struct {
	// Guard decides who may call what. Required; its Wrap has to stand before the handler.
	Guard *access.Guard
	// Build is this build, as entries name builds; for verification.
	Build string
	// Logger gets the errors that callers do not see; slog.Default() by default.
	Logger *slog.Logger
}

type api struct {
	rt     *quipu.Runtime
	reader *inspect.Reader
	guard  *access.Guard
	build  string
	log    *slog.Logger
}

// route is one operation. Its handler returns what it has not answered yet as an error.
type route struct {
	method, path string
	role         access.Role
	do           handling
}

type handling func(*api, http.ResponseWriter, *http.Request) error

// quick bounds an operation that neither waits nor streams.
func quick(do handling) handling {
	return func(a *api, w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), callWait)
		defer cancel()
		return do(a, w, r.WithContext(ctx))
	}
}

// bare is an operation without parameters.
func bare(do handling) handling {
	return func(a *api, w http.ResponseWriter, r *http.Request) error {
		if err := parameters(r).err; err != nil {
			return err
		}
		return do(a, w, r)
	}
}

// long bounds an operation that reads a whole journal, and how many of them are under way: see
// access.Guard.Few.
func long(do handling) handling {
	return func(a *api, w http.ResponseWriter, r *http.Request) (err error) {
		a.guard.Few(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			access.Extend(w, longWait+writeMargin)
			ctx, cancel := context.WithTimeout(r.Context(), longWait)
			defer cancel()
			err = do(a, &access.Steady{ResponseWriter: w}, r.WithContext(ctx))
		})).ServeHTTP(w, r)
		return err
	}
}

// routes are all operations; openapi.yaml describes each.
var routes = []route{
	{http.MethodGet, "/openapi.json", access.Viewer, bare((*api).openapi)},
	{http.MethodPost, "/jobs", access.Client, quick(bare((*api).start))},
	{http.MethodGet, "/jobs", access.Viewer, quick((*api).list)},
	{http.MethodGet, "/counts", access.Viewer, quick((*api).count)},
	{http.MethodGet, "/jobs/{job}", access.Viewer, (*api).get},
	{http.MethodGet, "/jobs/{job}/messages", access.Viewer, long((*api).messages)},
	{http.MethodGet, "/jobs/{job}/events", access.Viewer, long((*api).events)},
	{http.MethodGet, "/jobs/{job}/trace", access.Viewer, long((*api).trace)},
	{http.MethodGet, "/jobs/{job}/wait", access.Viewer, (*api).wait},
	{http.MethodPost, "/jobs/{job}/interrupt", access.Client, quick(bare((*api).interrupt))},
	{http.MethodPost, "/jobs/{job}/resume", access.Operator, quick(bare((*api).resume))},
	{http.MethodPost, "/jobs/{job}/fork", access.Operator, quick(bare((*api).fork))},
	{http.MethodGet, "/jobs/{job}/verify", access.Viewer, long(bare((*api).verify))},
	{http.MethodGet, "/jobs/{job}/export", access.Viewer, long(bare((*api).export))},
	{http.MethodPost, "/bulk/interrupt", access.Client, quick((*api).bulkInterrupt)},
	{http.MethodPost, "/bulk/resume", access.Operator, quick((*api).bulkResume)},
	{http.MethodPost, "/signals", access.Client, quick(bare((*api).signal))},
	{http.MethodGet, "/dead-letters", access.Viewer, quick((*api).deadLetters)},
	{http.MethodPost, "/dead-letters/{id}/decision", access.Operator, quick(bare((*api).decide))},
	{http.MethodGet, "/space", access.Viewer, quick(bare((*api).space))},
	{http.MethodGet, "/flows", access.Viewer, quick(bare((*api).flows))},
	{http.MethodPost, "/flows", access.Operator, quick(bare((*api).deploy))},
	{http.MethodPost, "/flows/{flow}/{version}/activate", access.Operator, quick(bare((*api).activate))},
	{http.MethodGet, "/flows/{flow}/{version}", access.Viewer, quick(bare((*api).flow))},
}

// New makes the handler of the API, for requests below Path.
func New(rt *quipu.Runtime, cfg Config) http.Handler {
	a := &api{rt: rt, reader: below.Reader(rt), guard: cfg.Guard, build: cfg.Build, log: cfg.Logger}
	if a.log == nil {
		a.log = slog.Default()
	}
	cfg.Guard.Larger(Path+"/flows", maxDeployBody)
	mux, methods := http.NewServeMux(), map[string][]string{}
	for _, r := range routes {
		methods[r.path] = append(methods[r.path], r.method)
		mux.Handle(r.method+" "+Path+r.path, cfg.Guard.Need(r.role, a.answering(r.do)))
	}
	for path, allowed := range methods {
		mux.HandleFunc(Path+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			access.NewProblem(http.StatusMethodNotAllowed, CodeMethod, "this path takes "+strings.Join(allowed, " and ")).Write(w)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		access.NewProblem(http.StatusNotFound, CodeNoRoute, "the API has no such path: "+Path+"/openapi.json describes it").Write(w)
	})
	return mux
}

// answering makes a handler of an operation. Whatever ends it, the caller is told: one that has left
// hears nothing anyway, and one that only ended its side of the connection would take silence for
// success.
func (a *api) answering(do handling) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := readable(r)
		if err == nil {
			err = do(a, w, r)
		}
		if err == nil {
			return
		}
		p := endedEarly(r, problemOf(err))
		if p.Code == CodeInternal {
			a.log.Error("a call of the API failed", "method", r.Method, "operation", r.Pattern, "error", err)
		}
		if p.Status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", retryAfter)
		}
		p.Write(w)
	})
}

// endedEarly is the problem of a call that perhaps failed for no reason of its own, because its time
// or its connection has ended: that is no fault of the database, and a write may have been done.
func endedEarly(r *http.Request, p *access.Problem) *access.Problem {
	gone, write := r.Context().Err() != nil, r.Method == http.MethodPost
	switch {
	case write && (p.Code == CodeTimeout || gone && p.Code == CodeInternal):
		return access.NewProblem(http.StatusServiceUnavailable, CodeUnknown, unknownDetail)
	case write, !gone, p.Code != CodeInternal && p.Code != CodeTimeout && p.Code != access.CodeUnavailable:
		return p
	}
	if why, is := errors.AsType[*access.Problem](ended(r.Context())); is {
		return why
	}
	return access.NewProblem(http.StatusBadRequest, CodeIncomplete, "the connection was closed on the side of the caller before the answer: keep it open")
}

// readable refuses a path that no key or name can have.
func readable(r *http.Request) error {
	if path := r.URL.Path; !utf8.ValidString(path) || strings.ContainsRune(path, 0) {
		return malformed("the path has U+0000, or is no UTF-8: no job and no flow is named so")
	}
	return nil
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the caller may have gone
	return nil
}

// lists are the parameters that may be given several times, at most maxTexts.
var lists = []string{"state", "tag"}

const maxTexts = 20

// query reads parameters, and refuses those that the operation does not have.
type query struct {
	values url.Values
	err    error
}

func parameters(r *http.Request, names ...string) *query {
	q := &query{}
	if q.values, q.err = url.ParseQuery(r.URL.RawQuery); q.err != nil {
		q.err = malformed("the query cannot be read: " + q.err.Error())
	}
	for name, texts := range q.values {
		switch {
		case !slices.Contains(names, name):
			q.err = cmp.Or(q.err, malformed(fmt.Sprintf("there is no parameter %.80q, but %s", name, cmp.Or(strings.Join(names, ", "), "none"))))
		case len(texts) > 1 && !slices.Contains(lists, name):
			q.err = cmp.Or(q.err, malformed("parameter "+name+" is given twice: which one counts would be a guess"))
		case len(texts) > maxTexts:
			q.err = cmp.Or(q.err, malformed(fmt.Sprintf("parameter %s is given %d times: at most %d", name, len(texts), maxTexts)))
		}
		for _, text := range texts {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				q.err = cmp.Or(q.err, malformed(fmt.Sprintf("parameter %.80q: it has U+0000, or is no UTF-8", name)))
			}
		}
	}
	return q
}

// read takes one parameter, if it is given.
func read[T any](q *query, name string, to *T, parse func(string) (T, error)) {
	if text := q.values.Get(name); text != "" && q.err == nil {
		v, err := parse(text)
		if err != nil {
			q.err = malformed("parameter " + name + ": " + err.Error())
			return
		}
		*to = v
	}
}

// instant reads a time.
func instant(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		err = errors.New("it is a time such as 2026-01-31T18:00:00Z")
	}
	return at, err
}

// number reads a whole number.
func number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		err = errors.New("it is a whole number")
	}
	return n, err
}

// plain takes a text as it is.
func plain(text string) (string, error) { return text, nil }

//go:embed openapi.yaml
var described []byte

// Document returns the OpenAPI document, as JSON.
var Document = sync.OnceValues(func() ([]byte, error) { return yaml.YAMLToJSON(described) })

func (a *api) openapi(w http.ResponseWriter, _ *http.Request) error {
	text, err := Document()
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, json.RawMessage(text))
}
