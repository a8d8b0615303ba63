package api_test

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quipu-journal/quipu/api"
)

// document is the served document. Its schemas are JSON Schemas as they are, since OpenAPI 3.1
// takes them so; the compiler resolves their references inside the document.
type document struct {
	mu       sync.Mutex
	root     map[string]any
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

const name = "openapi.json"

var described = sync.OnceValues(func() (*document, error) {
	text, err := api.Document()
	if err != nil {
		return nil, err
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	d := &document{
		root: root.(map[string]any), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{},
	}
	d.compiler.AssertFormat()
	return d, d.compiler.AddResource(name, root)
})

// at follows a path of names through the document, and references on the way. It returns what is
// there and its place as a pointer.
func (d *document) at(path ...string) (any, string) {
	var node any = d.root
	place := "#"
	for i, step := range path {
		object, ok := node.(map[string]any)
		if !ok {
			return nil, ""
		}
		if node, ok = object[step]; !ok {
			return nil, ""
		}
		place += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
		if inner, ok := node.(map[string]any); ok && i < len(path)-1 && inner["$ref"] != nil {
			node, place = d.at(strings.Split(strings.TrimPrefix(inner["$ref"].(string), "#/"), "/")...)
		}
	}
	return node, place
}

// fits validates a value against the schema at a place.
func (d *document) fits(place string, value any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.schemas[place]
	if s == nil {
		var err error
		if s, err = d.compiler.Compile(name + escaped(place)); err != nil {
			return err
		}
		d.schemas[place] = s
	}
	return s.Validate(value)
}

// escaped is a pointer as a fragment of a URL.
func escaped(place string) string { return "#" + (&url.URL{Fragment: place[1:]}).EscapedFragment() }

// operation finds the path of a request in the document.
func (d *document) operation(r *http.Request) (path string, found bool) {
	asked := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), api.Path), "/")
	paths, _ := d.at("paths")
	for path, item := range paths.(map[string]any) {
		steps := strings.Split(path, "/")
		same := len(steps) == len(asked) && item.(map[string]any)[strings.ToLower(r.Method)] != nil
		for i := 0; same && i < len(steps); i++ {
			same = steps[i] == asked[i] || strings.HasPrefix(steps[i], "{")
		}
		if same {
			return path, true
		}
	}
	return "", false
}

// answered holds an answer against its schema.
func (d *document) answered(path string, r *http.Request, resp *http.Response, body []byte) error {
	method := strings.ToLower(r.Method)
	status := strconv.Itoa(resp.StatusCode)
	if there, _ := d.at("paths", path, method, "responses", status); there == nil {
		status = "default"
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	_, place := d.at("paths", path, method, "responses", status, "content", kind, "schema")
	switch {
	case resp.StatusCode == http.StatusNoContent && len(body) == 0:
		return nil
	case place == "":
		return fmt.Errorf("%s %s: an answer %s of type %q is not described", method, path, status, kind)
	case !strings.HasSuffix(kind, "json"):
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return d.fits(place, value)
}

// asked holds a request that was taken against its schemas: the body and the parameters of the
// query.
func (d *document) asked(path string, r *http.Request, body []byte) error {
	method := strings.ToLower(r.Method)
	if _, place := d.at("paths", path, method, "requestBody", "content", "application/json", "schema"); place != "" && len(body) > 0 {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err == nil {
			err = d.fits(place, value)
		}
		if err != nil {
			return err
		}
	}
	for name, texts := range r.URL.Query() {
		place, kind := d.parameter(path, method, name)
		if place == "" {
			return fmt.Errorf("%s %s: parameter %s is not described", method, path, name)
		}
		if err := d.fits(place, valueOf(kind, texts)); err != nil {
			return err
		}
	}
	return nil
}

// parameter finds the schema of a parameter of the query, and its type.
func (d *document) parameter(path, method, name string) (place, kind string) {
	list, _ := d.at("paths", path, method, "parameters")
	for i, p := range list.([]any) {
		at := fmt.Sprintf("#/paths/%s/%s/parameters/%d/schema", strings.ReplaceAll(path, "/", "~1"), method, i)
		one := p.(map[string]any)
		if ref, _ := one["$ref"].(string); ref != "" {
			steps := strings.Split(strings.TrimPrefix(ref, "#/"), "/")
			there, to := d.at(steps...)
			one, at = there.(map[string]any), to+"/schema"
		}
		if one["name"] == name && one["in"] == "query" {
			kind, _ = one["schema"].(map[string]any)["type"].(string)
			return at, kind
		}
	}
	return "", ""
}

// valueOf is what the texts of a parameter stand for.
func valueOf(kind string, texts []string) any {
	switch n, err := strconv.ParseFloat(texts[0], 64); {
	case kind == "array":
		all := make([]any, len(texts))
		for i, text := range texts {
			all[i] = text
		}
		return all
	case kind == "integer" && err == nil:
		return n
	case kind == "boolean":
		return texts[0] == "true"
	}
	return texts[0]
}

// RoundTrip implements http.RoundTripper: it holds each answer against the document, and each
// request that was taken.
func (h held) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || resp.Header.Get("Content-Type") == "text/event-stream" {
		return resp, err
	}
	got, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(got))
	if err != nil {
		return nil, err
	}
	d, err := described()
	if err != nil {
		return nil, err
	}
	path, found := d.operation(r)
	if !found { // no route, or no such method: a problem as any other
		return resp, nil
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		err = d.asked(path, r, sent)
	}
	if err == nil {
		err = d.answered(path, r, resp, got)
	}
	if err != nil {
		h.t.Errorf("%s %s %s → %s: %v", r.Method, r.URL, sent, got, err)
	}
	return resp, nil
}
