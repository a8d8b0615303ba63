package trace

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	span "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// sink is a collector: it keeps every span that is exported to it over HTTP.
type sink struct {
	t      *testing.T
	server *httptest.Server

	mu    sync.Mutex
	spans []*span.Span
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{t: t}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// ServeHTTP takes an export request.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/v1/traces" {
		return // its sender was killed, or these are metrics
	}
	var request collector.ExportTraceServiceRequest
	if !assert.NoError(s.t, proto.Unmarshal(body, &request)) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			s.spans = append(s.spans, scope.GetSpans()...)
		}
	}
	w.WriteHeader(http.StatusOK)
}

func (s *sink) all() []*span.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spans
}
