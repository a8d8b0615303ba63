package attacks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/quipu-journal/quipu"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/workers"
)

// callFlow passes its input to the handler http: whoever starts a job says what is called.
const callFlow = `flow: call
version: "1"
activities:
  start: {type: trigger}
  call: {type: worker, topic: http, input: "${ start.output }", retry: {attempts: 1}}
output: {got: "${ call.output }"}
transitions: {start: [call]}
`

// ended starts a job and returns its output, or its error.
func ended(t *testing.T, rt *quipu.Runtime, flow, key string, input any) (json.RawMessage, *quipu.JobError) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	job, err := rt.Start(ctx, flow, key, input)
	require.NoError(t, err)
	out, err := rt.Wait(ctx, job)
	if err == nil {
		return out, nil
	}
	var failed *quipu.JobError
	require.ErrorAs(t, err, &failed)
	return nil, failed
}

// metadata is what a cloud has inside: it gives credentials to whoever reaches it. It
// listens on loopback, which Linux reaches by the unspecified address, too.
func metadata(t *testing.T) (port string, stolen *atomic.Int64) {
	t.Helper()
	stolen = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stolen.Add(1)
		_, _ = w.Write([]byte("AccessKeyId, SecretAccessKey"))
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	return u.Port(), stolen
}

// S14: a server outside redirects a call to an address inside, or the job's input names
// such an address, in every spelling. The job fails with what was refused, and nothing
// inside was reached.
func TestS14ARedirectLeadsInside(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	reg := workers.New()
	workers.RegisterBuiltins(reg)
	rt := g.open(reg)
	g.Deploy(rt, callFlow)
	g.Run(rt)
	port, stolen := metadata(t)
	inside := []string{
		"http://0.0.0.0:" + port + "/latest/meta-data",
		"http://[::ffff:0.0.0.0]:" + port + "/latest/meta-data",
		"http://169.254.169.254/latest/meta-data",
		"http://[::ffff:a9fe:a9fe]/latest/meta-data",
		"http://[64:ff9b::a9fe:a9fe]/latest/meta-data",
		"http://[fd00:ec2::254]/latest/meta-data",
	}
	friend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, q.URL.Query().Get("to"), http.StatusFound)
	}))
	t.Cleanup(friend.Close)
	for i, to := range inside {
		for how, from := range map[string]string{"named": to, "redirect": friend.URL + "/?to=" + url.QueryEscape(to)} {
			out, failed := ended(t, rt, "call", fmt.Sprint(how, i), map[string]string{"url": from})
			require.NotNil(t, failed, "%s: %s", to, out)
			require.Equal(t, http.StatusForbidden, failed.Code)
			require.Equal(t, wire.ClassRefused, failed.Cause.Class)
		}
	}
	require.Zero(t, stolen.Load(), "nobody reached what is inside")
	out, failed := ended(t, rt, "call", "service", map[string]string{"url": "http://127.0.0.1:" + port})
	require.Nil(t, failed)
	require.Contains(t, string(out), "AccessKeyId", "a service on this machine is called")
}
