package trace

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// span is what a collector says of a span.
type span struct {
	Trace, ID, Parent, Name string
	Links                   []string // ids of spans
	whole                   string   // all of it, for one that has no other way to tell spans apart
}

// backend is a collector that can be asked.
type backend interface {
	// url is where spans are sent, by OTLP over HTTP.
	url() string
	// spans returns the spans of a trace.
	spans(ctx context.Context, trace string) []span
}

// sink is a backend that keeps every span that is exported to it, and drops those that it has, as
// Jaeger does.
type sink struct {
	t      *testing.T
	server *httptest.Server
	away   atomic.Bool // it refuses everything

	mu  sync.Mutex
	all []span
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{t: t}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

func (s *sink) url() string { return s.server.URL }

// ServeHTTP takes an export request.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/v1/traces" {
		return // its sender was killed, or these are metrics
	}
	if s.away.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	var request collector.ExportTraceServiceRequest
	if !assert.NoError(s.t, proto.Unmarshal(body, &request)) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		of := text(s.t, resource.GetResource())
		for _, scope := range resource.GetScopeSpans() {
			for _, x := range scope.GetSpans() {
				one := span{
					Trace: hex.EncodeToString(x.GetTraceId()), ID: hex.EncodeToString(x.GetSpanId()),
					Parent: hex.EncodeToString(x.GetParentSpanId()), Name: x.GetName(), whole: of + text(s.t, x),
				}
				for _, l := range x.GetLinks() {
					one.Links = append(one.Links, hex.EncodeToString(l.GetSpanId()))
				}
				s.all = append(s.all, one)
			}
		}
	}
}

func text(t *testing.T, m proto.Message) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	assert.NoError(t, err)
	return string(b)
}

func (s *sink) spans(_ context.Context, trace string) (out []span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	for _, x := range s.all {
		if x.Trace == trace && !seen[x.whole] {
			seen[x.whole] = true
			out = append(out, x)
		}
	}
	return out
}

// names counts the spans by name.
func names(spans []span) map[string]int {
	count := map[string]int{}
	for _, s := range spans {
		count[s.Name]++
	}
	return count
}

// requireTree requires that the spans are one tree: each has an id of its own and a parent that is
// there, except the job's span, whose parent is the caller's.
func requireTree(t *testing.T, spans []span, caller, job string) {
	t.Helper()
	byID := map[string]span{}
	for _, s := range spans {
		require.Equal(t, spans[0].Trace, s.Trace, s.Name)
		other, twice := byID[s.ID]
		require.False(t, twice, "%s and %s have the id %s", s.Name, other.Name, s.ID)
		byID[s.ID] = s
	}
	roots := 0
	for _, s := range spans {
		if s.Parent == caller {
			require.Equal(t, job, s.Name)
			roots++
			continue
		}
		require.Contains(t, byID, s.Parent, "%s has no parent", s.Name)
	}
	require.Equal(t, 1, roots)
	for _, s := range spans {
		at := s
		for steps := 0; at.Parent != caller; steps++ {
			require.LessOrEqual(t, steps, len(spans), "%s hangs in a ring", s.Name)
			at = byID[at.Parent]
		}
	}
}

// under returns the names of the spans below one, at any depth, with their number.
func under(spans []span, name string) map[string]int {
	in := map[string]bool{}
	for _, s := range spans {
		in[s.ID] = s.Name == name
	}
	for grown := true; grown; {
		grown = false
		for _, s := range spans {
			if in[s.Parent] && !in[s.ID] {
				in[s.ID], grown = true, true
			}
		}
	}
	count := map[string]int{}
	for _, s := range spans {
		if in[s.ID] && s.Name != name {
			count[s.Name]++
		}
	}
	return count
}
