package api

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/access"
)

// Path is where the API stands on its server.
const Path = "/api/v1"

// callWait bounds a call that neither waits nor streams.
const callWait = 30 * time.Second

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
	rt    *quipu.Runtime
	build string
	log   *slog.Logger
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

// routes are all operations; openapi.yaml describes each.
var routes = []route{
	{http.MethodGet, "/openapi.json", access.Viewer, (*api).openapi},
	{http.MethodPost, "/jobs", access.Client, quick((*api).start)},
	{http.MethodGet, "/jobs", access.Viewer, quick((*api).list)},
	{http.MethodGet, "/counts", access.Viewer, quick((*api).count)},
	{http.MethodGet, "/jobs/{job}", access.Viewer, quick((*api).get)},
	{http.MethodGet, "/jobs/{job}/wait", access.Viewer, (*api).wait},
	{http.MethodPost, "/jobs/{job}/interrupt", access.Client, quick((*api).interrupt)},
	{http.MethodGet, "/jobs/{job}/verify", access.Viewer, quick((*api).verify)},
	{http.MethodGet, "/jobs/{job}/export", access.Viewer, (*api).export},
	{http.MethodPost, "/signals", access.Client, quick((*api).signal)},
	{http.MethodGet, "/dead-letters", access.Viewer, quick((*api).deadLetters)},
	{http.MethodPost, "/dead-letters/{id}/decision", access.Operator, quick((*api).decide)},
	{http.MethodGet, "/flows", access.Viewer, quick((*api).flows)},
	{http.MethodGet, "/flows/{flow}/{version}", access.Viewer, quick((*api).flow)},
}

// New makes the handler of the API, for requests below Path.
func New(rt *quipu.Runtime, cfg Config) http.Handler {
	a := &api{rt: rt, build: cfg.Build, log: cfg.Logger}
	if a.log == nil {
		a.log = slog.Default()
	}
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

// answering makes a handler of an operation.
func (a *api) answering(do handling) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := do(a, w, r)
		if err == nil || r.Context().Err() != nil { // nobody is there to be answered
			return
		}
		p := problemOf(err)
		if p.Code == CodeInternal {
			a.log.Error("a call of the API failed", "method", r.Method, "path", r.URL.EscapedPath(), "error", err)
		}
		if p.Status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", retryAfter)
		}
		p.Write(w)
	})
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

// decode reads the body of a write: one JSON object without unknown members. None at all is an
// empty one.
func decode(r *http.Request, v any) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return access.NewProblem(http.StatusUnsupportedMediaType, CodeMediaType, "the body has to be application/json")
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	switch err := dec.Decode(v); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return unreadable(err)
	}
	switch _, err := dec.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return unreadable(err)
	}
	return malformed(cannotReadDetail + "something follows the object")
}

func unreadable(err error) error {
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return err
	}
	why := err.Error()
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // it names types of Go
		why = fmt.Sprintf("%s cannot be a JSON %s (byte %d)", cmp.Or(bad.Field, "it is an object, which"), bad.Value, bad.Offset)
	}
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		why = fmt.Sprintf("%v (byte %d)", bad, bad.Offset)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		why = "it ends within a value"
	}
	return malformed(cannotReadDetail + why)
}

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
	for name := range q.values {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") {
			q.err = cmp.Or(q.err, malformed("there is no parameter "+name+", but "+strings.Join(names, ", ")))
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
func instant(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) }

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
