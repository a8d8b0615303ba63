//go:build jaeger

package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// jaeger is a Jaeger of this test.
type jaeger struct {
	t           *testing.T
	otlp, query string // addresses
	// twice says that its store keeps a span again that it has. (This version's query service means
	// to drop it, but marks one of the two first, so that they differ.)
	twice bool
}

// newJaeger runs the program that QUIPU_JAEGER names; scripts/jaeger builds it.
func newJaeger(t *testing.T, storage string) *jaeger {
	t.Helper()
	j := &jaeger{t: t, otlp: free(t), query: free(t), twice: storage == "memory"}
	args := []string{"--collector.otlp.http.host-port=" + j.otlp, "--query.http-server.host-port=" + j.query}
	for _, other := range []string{
		"admin.http", "collector.grpc-server", "collector.http-server", "collector.otlp.grpc", "query.grpc-server", "http-server",
	} {
		args = append(args, "--"+other+".host-port="+free(t))
	}
	for _, udp := range []string{"jaeger-binary", "jaeger-compact", "zipkin-compact"} {
		args = append(args, "--processor."+udp+".server-host-port=127.0.0.1:0")
	}
	cmd := exec.Command(os.Getenv("QUIPU_JAEGER"), args...)
	cmd.Env = append(os.Environ(), "SPAN_STORAGE_TYPE="+storage)
	log, err := os.Create(t.TempDir() + "/jaeger.log")
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error says that it has ended
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s", text[max(0, len(text)-4000):])
		}
	})
	require.Eventually(t, func() bool {
		r, err := http.Get("http://" + j.query + "/api/services")
		return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
	}, time.Minute, 100*time.Millisecond)
	return j
}

// free is a free address of this machine.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func (j *jaeger) url() string { return "http://" + j.otlp }

// spans asks Jaeger's own query API, as its page does.
func (j *jaeger) spans(ctx context.Context, trace string) (out []span) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/api/traces/%s", j.query, trace), nil)
	require.NoError(j.t, err)
	r, err := http.DefaultClient.Do(req)
	require.NoError(j.t, err)
	defer r.Body.Close()
	if r.StatusCode == http.StatusNotFound {
		return nil
	}
	var answer struct {
		Data []struct {
			Spans []struct {
				TraceID, SpanID, OperationName string
				StartTime, Duration            int64
				Tags                           json.RawMessage
				References                     []struct{ RefType, TraceID, SpanID string }
			}
		}
	}
	require.NoError(j.t, json.NewDecoder(r.Body).Decode(&answer))
	seen := map[string]bool{}
	for _, t := range answer.Data {
		for _, s := range t.Spans {
			whole := fmt.Sprint(s.SpanID, s.OperationName, s.References, s.StartTime, s.Duration, s.Tags)
			if j.twice && seen[whole] {
				continue
			}
			seen[whole] = true
			one := span{Trace: s.TraceID, ID: s.SpanID, Name: s.OperationName}
			for _, ref := range s.References {
				if ref.RefType == "CHILD_OF" && ref.TraceID == s.TraceID {
					one.Parent = ref.SpanID
				} else {
					one.Links = append(one.Links, ref.SpanID)
				}
			}
			out = append(out, one)
		}
	}
	return out
}

// O3: what the other tests claim holds for a real Jaeger: with a store that knows a span by its id,
// and with one that keeps everything.
func TestJaegerShowsOneTree(t *testing.T) {
	t.Parallel()
	for _, storage := range []string{"badger", "memory"} {
		t.Run(storage, func(t *testing.T) {
			t.Parallel()
			oneTree(t, newJaeger(t, storage))
		})
	}
}
