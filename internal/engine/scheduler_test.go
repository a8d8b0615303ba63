package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// clockwork is a space in memory with some schedulers, in a bubble whose clock
// begins at 2000-01-01T00:00:00Z.
type clockwork struct {
	t      *testing.T
	store  *memstore.Store
	starts atomic.Int64 // calls
}

func newClockwork(t *testing.T) *clockwork {
	return &clockwork{t: t, store: memstore.New(memstore.Config{Now: func() int64 { return time.Now().UnixMicro() }})}
}

func (c *clockwork) deploy(name, schedule string) {
	c.t.Helper()
	f, err := flow.Parse("flow.yaml", fmt.Appendf(nil, `
flow: %s
version: "1"
schedule: %s
input: {type: object, required: [n]}
activities: {start: {type: trigger}}
`, name, schedule))
	require.NoError(c.t, err)
	ref := journal.FlowRef{Name: name, Version: "1", Digest: journal.Digest(f.Digest())}
	_, err = c.store.Deploy(c.t.Context(), store.Deployment{Ref: ref, Canonical: f.Canonical()})
	require.NoError(c.t, err)
}

// run lets n schedulers look for a while.
func (c *clockwork) run(n int, span time.Duration) {
	c.t.Helper()
	ctx, stop := context.WithTimeout(c.t.Context(), span)
	defer stop()
	done := make(chan error, n)
	for range n {
		s := &engine.Scheduler{
			Store: c.store, Flows: engine.NewFlows(c.store), Kept: func(key string) string {
				return key
			}, Begin: c.begin,
			Observer: observer.Nop{}, Logger: slog.New(slog.DiscardHandler),
		}
		go func() { done <- s.Run(ctx) }()
	}
	for range n {
		require.NoError(c.t, <-done)
	}
}

func (c *clockwork) begin(ctx context.Context, starts []store.Start) []store.Started {
	out := make([]store.Started, len(starts))
	if c.starts.Add(1)%4 == 0 {
		out[0].Err = store.ErrUnavailable // the next look tries again
		return out
	}
	out, err := journaltest.Driven{Store: c.store}.Start(ctx, starts, collation.Mode{})
	if err != nil {
		c.t.Errorf("start: %v", err)
	}
	return out
}

// jobs returns the keys of the flow's jobs, and the longest delay of a start.
func (c *clockwork) jobs(name string) (keys []string, late time.Duration) {
	c.t.Helper()
	got, err := c.store.Jobs(c.t.Context(), store.JobFilter{Flow: name})
	require.NoError(c.t, err)
	for _, j := range got.Jobs {
		at, err := time.Parse(name+"@"+time.RFC3339, j.Key)
		require.NoError(c.t, err)
		late = max(late, time.UnixMicro(int64(j.Started)).Sub(at))
		keys = append(keys, j.Key)
	}
	slices.Sort(keys)
	return keys, late
}

// E16, T8: however many processes look, each time starts one job, and soon.
func TestScheduledJobsStartOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClockwork(t)
		c.deploy("tick", `{cron: "*/5 * * * *", input: {n: 1}}`)
		c.deploy("never", `{cron: "0 0 29 2 *", input: {n: 1}}`)
		c.run(3, time.Hour+time.Minute)
		keys, late := c.jobs("tick")
		require.Len(t, keys, 12)
		require.Equal(t, "tick@2000-01-01T00:05:00Z", keys[0])
		require.Equal(t, "tick@2000-01-01T01:00:00Z", keys[11])
		require.Less(t, late, 10*time.Second, "of four starts one fails, and is tried again")
		id, err := c.store.FindJob(t.Context(), keys[0])
		require.NoError(t, err)
		v, err := c.store.Job(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, journal.JobOpen, v.State)
		keys, _ = c.jobs("never")
		require.Empty(t, keys)
	})
}

// The flow chooses what happens with times at which no process looked, and one look starts a
// bounded number of jobs.
func TestScheduledJobsAreCaughtUpWith(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClockwork(t)
		for _, policy := range []string{"none", "one", "all"} {
			c.deploy(policy, fmt.Sprintf(`{cron: "* * * * *", catch_up: %s, input: {n: 1}}`, policy))
		}
		time.Sleep(24*time.Hour + 30*time.Second)
		c.run(2, time.Second)
		all, _ := c.jobs("all")
		require.LessOrEqual(t, len(all), 1440)
		c.run(2, time.Minute)
		for policy, want := range map[string]int{"none": 2, "one": 2, "all": 1441} {
			keys, _ := c.jobs(policy)
			require.Len(t, keys, want, policy)
			require.Equal(t, policy+"@2000-01-02T00:01:00Z", keys[len(keys)-1])
		}
	})
}
