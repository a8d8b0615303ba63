package examples_test

import (
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/api/access"
)

// O10: a program in another language starts a job, signals it and waits for its end by the API,
// and may do so again.
func TestO10Client(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skipf("node is not installed, the client in JavaScript does not run here: %v", err)
	}
	s := open(t, "approval", nil)
	token, err := s.Tokens().Create(t.Context(), "shop", access.Client, 0)
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	guard := access.New(access.Config{Tokens: s.Tokens().Who, Logger: quiet})
	server := httptest.NewServer(guard.Wrap(api.New(s.Runtime, api.Config{Guard: guard, Logger: quiet})))
	defer server.Close()
	run := func(token string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "node", "trip.js", "trip/1")
		cmd.Dir, cmd.Env = "javascript", append(os.Environ(), "QUIPU_API="+server.URL, "QUIPU_TOKEN="+token)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, start := range []string{"new", "already"} {
		out, err := run(token)
		require.NoError(t, err, out)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Len(t, lines, 3, out)
		require.Contains(t, lines[0], `"start":"`+start+`"`)
		require.JSONEq(t, `{"status": "approved", "decision": {"by": "Grace"}, "reminders": 0}`, lines[2])
	}
	out, err := run(access.NewToken())
	require.Error(t, err)
	require.Contains(t, out, "unauthenticated")
}
