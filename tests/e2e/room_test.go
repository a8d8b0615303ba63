package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// twoTopics has two flows. One's topic has a handler, the other's has none.
const twoTopics = `
flow: %s
version: "1"
activities:
  start: {type: trigger}
  work: {type: worker, topic: %s, input: "${ start.output }"%s}
transitions: {start: [work]}
`

// small opens a space whose streams have 1 MiB, with an engine and a worker of echo that meet by
// NATS only.
func small(t *testing.T) (*env, *quipu.Runtime) {
	e := newEnv(t, false)
	e.noLocal = true
	reg := workers.New()
	workers.Handle(reg, "echo", func(_ context.Context, in any) (any, error) { return in, nil })
	rt, _ := e.run(reg, func(c *quipu.Config) { c.NATSOptions.MaxBytes = 1 << 20 })
	e.Deploy(rt, fmt.Sprintf(twoTopics, "echo", "echo", ""))
	e.Deploy(rt, fmt.Sprintf(twoTopics, "nobody", "nobody", ""))
	e.Deploy(rt, fmt.Sprintf(twoTopics, "brief", "nobody", ", within: 1s"))
	return e, rt
}

// startMany starts jobs with an input of that size.
func (e *env) startMany(rt *quipu.Runtime, name string, n, size int) []quipu.Job {
	e.t.Helper()
	reqs := make([]quipu.StartRequest, n)
	for i := range reqs {
		reqs[i] = quipu.StartRequest{
			Flow: name, Key: fmt.Sprintf("%s-%d", name, i), Input: map[string]string{"x": strings.Repeat("x", size)},
		}
	}
	results, err := rt.StartMany(e.t.Context(), reqs)
	require.NoError(e.t, err)
	jobs := make([]quipu.Job, n)
	for i, r := range results {
		require.NoError(e.t, r.Err)
		jobs[i] = r.Job
	}
	return jobs
}

// queued is how many requests of a topic are in the stream.
func (e *env) queued(rt *quipu.Runtime, topic string) int64 {
	e.t.Helper()
	topics, err := rt.Topics(e.t.Context())
	require.NoError(e.t, err)
	i := slices.IndexFunc(topics, func(x quipu.Topic) bool { return x.Name == topic })
	if i < 0 {
		return 0
	}
	return topics[i].Queued
}

// troubles are those that all processes tell.
func (e *env) troubles(rt *quipu.Runtime) (all []store.Trouble) {
	e.t.Helper()
	living, err := below.Of(rt).Processes(e.t.Context())
	require.NoError(e.t, err)
	for i := range living {
		all = append(all, living[i].Troubles...)
	}
	return all
}

// T5: requests that nobody takes leave the others room, also in a small stream; why, the processes
// and the readiness tell of it. When their jobs have ended they leave the stream.
func TestT5AnUnservedTopicHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	e, rt := small(t)
	jobs := e.startMany(rt, "nobody", 300, 20_000)
	for i := range 20 {
		_, err := e.Wait(rt, e.Start(rt, "echo", fmt.Sprintf("echo-%d", i), map[string]int{"i": i}))
		require.NoError(t, err)
	}
	queued := int64(0)
	e.eventually("requests are in the stream", func() bool {
		queued = e.queued(rt, "nobody") // none for a moment, when rows have sent them again
		return queued > 0
	})
	require.Less(t, queued, int64(60), "not more than the stream has room for")
	require.NoError(t, rt.Check(t.Context()), "only one topic waits")
	var waits quipu.Job
	e.eventually("a row says that its message was refused", func() bool {
		i := slices.IndexFunc(jobs, func(j quipu.Job) bool { return e.view(rt, j).Rows[0].TurnSent < 0 })
		if i >= 0 {
			waits = jobs[i]
		}
		return i >= 0
	})
	e.eventually("why says so", func() bool {
		j, err := rt.Inspect(t.Context(), waits, view.Want{Reasons: true})
		require.NoError(t, err)
		return slices.ContainsFunc(j.Reasons, func(r view.Reason) bool {
			return strings.Contains(r.Text, "could not be published: the topic nobody has about") && strings.Contains(r.Text, "of 1048576 bytes are taken")
		})
	})
	e.eventually("the processes tell of it, and of nothing else", func() bool {
		all := e.troubles(rt)
		return len(all) == 1 && all[0].Kind == string(transport.TroubleRoom) && all[0].Name == "nobody"
	})
	for _, j := range jobs {
		_, err := rt.Interrupt(t.Context(), j)
		require.NoError(t, err)
	}
	e.eventually("requests of jobs that have ended are in the stream", func() bool { return e.queued(rt, "nobody") == 0 })
	e.eventually("nothing is told of a topic that has nothing", func() bool { return len(e.troubles(rt)) == 0 })
}

// T1: what has ended by its time leaves the stream, too.
func TestT1LateRequestsLeaveTheStream(t *testing.T) {
	t.Parallel()
	e, rt := small(t)
	for _, j := range e.startMany(rt, "brief", 50, 10) {
		_, err := e.Wait(rt, j)
		require.Error(t, err)
		require.Equal(t, journal.JobFailed, e.view(rt, j).State)
	}
	e.eventually("they are in the stream for good", func() bool { return e.queued(rt, "nobody") == 0 })
}

// S5, T5: a stream that takes nothing makes its process unready, and a consumer that somebody paused
// goes on. Both are over soon after their cause.
func TestS5WhatStopsMessagesIsTold(t *testing.T) {
	t.Parallel()
	e, rt := small(t)
	nc, err := nats.Connect(e.ownerOfNATS())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = e.Wait(rt, e.Start(rt, "echo", "first", 1))
	require.NoError(t, err)

	const name = "QUIPU_shop_WORK"
	_, err = js.PauseConsumer(t.Context(), name, "work-echo", time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	_, err = e.Wait(rt, e.Start(rt, "echo", "paused", 2))
	require.NoError(t, err)

	limit := func(size int32) {
		s, err := js.Stream(t.Context(), name)
		require.NoError(t, err)
		cfg := s.CachedInfo().Config
		cfg.MaxMsgs = int64(size)
		_, err = js.UpdateStream(t.Context(), cfg)
		require.NoError(t, err)
	}
	e.startMany(rt, "nobody", 1, 10)
	e.eventually("the request is sent", func() bool { return e.queued(rt, "nobody") == 1 })
	limit(1)
	job := e.Start(rt, "echo", "refused", 3)
	e.eventually("the process is not ready", func() bool { return rt.Check(t.Context()) != nil })
	err = rt.Check(t.Context())
	require.ErrorIs(t, err, quipu.ErrNotReady)
	require.ErrorContains(t, err, "the stream QUIPU_shop_WORK takes no messages")
	require.ErrorContains(t, err, "maximum messages exceeded")
	limit(-1)
	began := time.Now()
	_, err = e.Wait(rt, job)
	require.NoError(t, err)
	require.Less(t, time.Since(began), 30*time.Second)
	e.eventually("the process is ready", func() bool { return rt.Check(t.Context()) == nil })
}
