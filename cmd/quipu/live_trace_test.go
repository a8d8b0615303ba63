package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// A trace is printed, drawn, and sent; what is sent twice is the same bytes (O2).
func TestTrace_O2(t *testing.T) {
	s := newSpace(t)
	s.deploy("says", "1", "echo", `"${ start.output.name }"`)
	s.ok("", "start", "says", "t-1", "--input", `{"name":"Ada"}`)
	s.ok("", "wait", "t-1", "--timeout", "1m")
	s.inOrder(s.ok("", "trace", "t-1"), "job t-1, trace ", ", completed\n", "job says state=completed", "  activity start", "  activity step",
		"    dispatch step  001100000000000", "    attempt step", "      queued step", "      run step",
		"    response step  201100000000001", "      step 1  000010000000001", "      step 2  000111000000001", "      step 3  000111100000001")
	all := objects(t, s.ok("", "trace", "t-1", "-o", "json"))
	require.Equal(t, []any{"t-1", "job", "says"}, []any{all[0]["key"], all[0]["part"], all[0]["about"]})
	require.Equal(t, all[0]["id"], all[1]["parent"])
	require.NotContains(t, all[0], "parent")
	picture := s.ok("", "trace", "t-1", "--svg")
	s.inOrder(picture, "<svg ", ">run step</text>", "</svg>")

	var mu sync.Mutex
	var got []string
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && r.URL.Path == "/v1/traces" {
			got = append(got, string(body))
		}
	}))
	defer collector.Close()
	for range 2 {
		require.Regexp(t, `^t-1  trace [0-9a-f]{32}  \d+ spans sent\n$`, s.ok("", "trace", "t-1", "--otlp", collector.URL))
	}
	require.Len(t, got, 2)
	require.Equal(t, got[0], got[1])

	require.Contains(t, s.fails(codeNotFound, "", "trace", "nope").Err, `no job has the key "nope"`)
	require.Contains(t, s.fails(cli.CodeUsage, "", "trace", "t-1", "--otlp", "localhost").Err, "use one such as http://localhost:4318")
	require.Contains(t, s.fails(cli.CodeUsage, "", "trace", "t-1", "t-1", "--svg").Err, "--svg: give one key")
	require.Contains(t, s.fails(cli.CodeFailed, "", "trace", "t-1", "--otlp", "http://127.0.0.1:1").Err, "send ")
}
