package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/api"
)

// O10: a client in another language, made from the document that the server gives, calls every
// operation of the document. Every answer and every event fits the document.
func TestO10EveryOperation(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skipf("node is not installed, the client in JavaScript does not run here: %v", err)
	}
	w := newSite(t)
	seen := &watched{held: held{t}, done: map[string]int{}}
	to, err := url.Parse(strings.TrimSuffix(w.url, api.Path))
	require.NoError(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
	}, Transport: seen})
	defer proxy.Close()
	cmd := exec.CommandContext(t.Context(), "node", "testdata/operations.mjs")
	cmd.Env = append(os.Environ(), "QUIPU_API="+proxy.URL)
	for role, token := range w.tokens {
		cmd.Env = append(cmd.Env, "TOKEN_"+strings.ToUpper(string(role))+"="+token)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	proxy.Close() // the last streams have been looked at

	d, err := described()
	require.NoError(t, err)
	require.Equal(t, slices.Sorted(maps.Keys(d.operations())), slices.Sorted(maps.Keys(seen.done)), "every operation of the document is called with success")
	require.Equal(t, 2, seen.events)
	require.Empty(t, seen.wrong)
}

// operations are the ids of all operations of the document.
func (d *document) operations() map[string]bool {
	ids := map[string]bool{}
	paths, _ := d.at("paths")
	for _, item := range paths.(map[string]any) {
		for _, op := range item.(map[string]any) {
			ids[op.(map[string]any)["operationId"].(string)] = true
		}
	}
	return ids
}

// watched is a transport that knows which operations succeeded, and holds the events of a stream
// against the document, too.
type watched struct {
	held
	mu     sync.Mutex
	done   map[string]int // by operationId
	events int
	wrong  []string
}

// RoundTrip implements http.RoundTripper.
func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.held.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	d, err := described()
	if err != nil {
		return nil, err
	}
	path, found := d.operation(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch id, _ := d.at("paths", path, strings.ToLower(r.Method), "operationId"); {
	case !found:
		w.wrong = append(w.wrong, r.Method+" "+r.URL.Path+" is not described")
	case resp.StatusCode < http.StatusMultipleChoices:
		w.done[id.(string)]++
	}
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		resp.Body = &stream{ReadCloser: resp.Body, w: w}
	}
	return resp, nil
}

// stream is a body of events that are looked at when it ends.
type stream struct {
	io.ReadCloser
	w    *watched
	text bytes.Buffer
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.text.Write(p[:n])
	if errors.Is(err, io.EOF) {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		for line := range strings.Lines(s.text.String()) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				s.w.events++
				if err := fitsOutcome(data); err != nil {
					s.w.wrong = append(s.w.wrong, fmt.Sprintf("%s: %v", data, err))
				}
			}
		}
	}
	return n, err
}

func fitsOutcome(data string) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(data))
	if err != nil {
		return err
	}
	d, err := described()
	if err != nil {
		return err
	}
	return d.fits("#/components/schemas/Outcome", value)
}
