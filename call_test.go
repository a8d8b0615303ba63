package quipu_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
)

// E14: a call is a job of one activity on the topic. Its key is the caller's, its output the
// handler's.
func TestE14Call(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := s.Call(ctx, "echo", "k", map[string]any{"a": "<1>"})
	require.NoError(t, err)
	require.Equal(t, `{"a":"<1>"}`, string(out))
	job, err := s.Find(ctx, "k")
	require.NoError(t, err)
	v, err := s.Job(ctx, job)
	require.NoError(t, err)
	require.Equal(t, journal.JobCompleted, v.State)
	require.Equal(t, []string{flow.CallName, "echo"}, []string{v.Flow, v.Version})
	// An error of the handler is the error of the job.
	_, err = s.Call(ctx, "fail", "f", map[string]any{"code": 409, "message": "declined"})
	var failed *quipu.JobError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 409, failed.Code)
	require.Equal(t, "f", failed.Job.Key)
	require.Contains(t, err.Error(), "declined")
	_, again := s.Call(ctx, "fail", "f", map[string]any{"code": 409, "message": "declined"})
	require.Equal(t, err, again, "it is the record")
}

const hello = `
flow: hello
version: "1"
activities: {start: {type: trigger}}
`

// E14: calls with one key are one job, even if they run at once. A call with another topic or
// input is refused.
func TestE14CallIsDeduplicated(t *testing.T) {
	t.Parallel()
	s := newSpace(t, hello)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			out, err := s.Call(ctx, "echo", "k", json.RawMessage(`{"n": 1}`))
			if err != nil || string(out) != `{"n":1}` {
				t.Errorf("%s, %v", out, err)
			}
		})
	}
	wg.Wait()
	counts, err := below.Of(s.Runtime).Counts(ctx)
	require.NoError(t, err)
	require.Equal(t, map[journal.JobState]int64{journal.JobCompleted: 1}, counts)
	s.begin("hello", "other", json.RawMessage(`{}`))
	for want, call := range map[string]func() (json.RawMessage, error){
		"has a job with another input":                          func() (json.RawMessage, error) { return s.Call(ctx, "echo", "k", 2) },
		`the key "k" has a job of flow quipu_call version echo`: func() (json.RawMessage, error) { return s.Call(ctx, "fail", "k", json.RawMessage(`{"n":1}`)) },
		`"other" has a job of flow hello version 1`:             func() (json.RawMessage, error) { return s.Call(ctx, "echo", "other", json.RawMessage(`{}`)) },
	} {
		_, err := call()
		require.ErrorContains(t, err, want)
		var taken *quipu.ConflictError
		require.ErrorAs(t, err, &taken)
		require.False(t, taken.SameFlow && taken.SameInput)
	}
}

// A bad call begins nothing.
func TestCallIsRefused(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	ctx := t.Context()
	for _, topic := range []string{"", "Echo", "a b", strings.Repeat("t", flow.MaxTopic+1)} {
		_, err := s.Call(ctx, topic, "k", nil)
		require.ErrorIs(t, err, quipu.ErrInput)
	}
	_, err := s.Call(ctx, "echo", "", nil)
	require.ErrorIs(t, err, quipu.ErrKey)
	_, err = s.Call(ctx, "echo", "k", json.RawMessage(`{`))
	require.ErrorIs(t, err, quipu.ErrInput)
	_, err = s.Find(ctx, "k")
	require.ErrorIs(t, err, quipu.ErrNotFound)
}

// A built-in flow cannot be deployed, nor started without its topic.
func TestBuiltinFlowsAreTheRuntimes(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	f, err := flow.Call("echo")
	require.NoError(t, err)
	require.ErrorAs(t, s.Deploy(t.Context(), f), new(flow.Faults))
	_, err = s.Start(t.Context(), flow.CallName, "k", nil)
	require.ErrorIs(t, err, quipu.ErrNotFound)
	require.ErrorContains(t, err, "its version is the topic")
}
