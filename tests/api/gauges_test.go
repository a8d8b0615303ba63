package api_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/workers"
)

// collector is an observer that asks for gauges and keeps counts.
type collector struct {
	observer.Nop

	mu     sync.Mutex
	source observer.Source
	counts map[string]int64
}

func (c *collector) Ask(source observer.Source) func() {
	c.source = source
	return func() { c.source = nil }
}

func (c *collector) Count(metric string, n int64, attributes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int64{}
	}
	for _, a := range append(attributes, "") {
		metric += " " + a
	}
	c.counts[metric] += n
}

// read returns the gauges, by name and values of their labels.
func (c *collector) read(ctx context.Context) (map[string]float64, error) {
	all, err := c.source(ctx)
	got := map[string]float64{}
	for _, r := range all {
		name := r.Metric
		for i := 1; i < len(r.Attributes); i += 2 {
			name += " " + r.Attributes[i]
		}
		got[name] = r.Value
	}
	return got, err
}

// O4: every process says what its pool and its callers do, and engines say what the space has.
// Starts and waits are counted by how they ended.
func TestO4Gauges(t *testing.T) {
	t.Parallel()
	w := world.New(t, "")
	reg := workers.New()
	workers.RegisterBuiltins(reg)
	of := func(c *collector, roles ...quipu.Role) *quipu.Runtime {
		cfg := w.Config()
		cfg.Workers = reg
		cfg.Roles, cfg.Observer = roles, c
		return w.Open(cfg)
	}
	var engine, client collector
	rt := of(&engine, quipu.RoleEngine)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- rt.Run(ctx) }()
	devtest.Await(t, "the engine", rt.Ready())
	c := of(&client, quipu.RoleEngine, quipu.RoleWorkers) // which it does not play, because it does not run
	_, err := c.Start(ctx, "quipu_call", "", nil)
	require.Error(t, err)
	calling, leave := context.WithCancel(ctx)
	called := make(chan error, 1)
	go func() { _, err := c.Call(calling, "nobody.serves", "k", 1); called <- err }()
	var got map[string]float64
	require.Eventually(t, func() bool {
		got, err = client.read(ctx)
		return err == nil && got[observer.MetricWaiting] == 1
	}, time.Minute, 10*time.Millisecond)
	leave()
	require.ErrorIs(t, devtest.Await(t, "the end of the call", called), context.Canceled)
	require.Contains(t, got, observer.MetricPoolLimit)
	require.NotContains(t, got, observer.MetricOverdue, "engines say that")
	require.EqualValues(t, 1, client.counts["quipu.starts outcome begun "])
	require.EqualValues(t, 1, client.counts["quipu.waits outcome left "])
	require.Contains(t, client.counts, "quipu.early topic echo outcome dropped ", "it is there before the first one")
	require.NotContains(t, engine.counts, "quipu.early topic echo outcome dropped ", "it runs no handlers")

	require.Eventually(t, func() bool {
		got, err = engine.read(ctx)
		return err == nil && got["quipu.topic.queued nobody.serves"] == 1
	}, time.Minute, 10*time.Millisecond)
	carried, err := client.read(ctx)
	require.NoError(t, err)
	require.Positive(t, carried["quipu.messages request jetstream"]+got["quipu.messages request jetstream"])
	require.Contains(t, got, "quipu.messages response folded")
	for _, m := range observer.Metrics() {
		if m.Space && len(m.Labels) == 0 {
			require.Contains(t, got, m.Name)
		}
	}
	require.EqualValues(t, 1, got["quipu.jobs quipu_call open"])
	require.EqualValues(t, 1, got["quipu.sessions engine"])
	require.EqualValues(t, 0, got["quipu.sessions workers"])
	late, cancel := context.WithCancel(ctx)
	cancel()
	got, err = engine.read(late)
	require.Error(t, err)
	require.Contains(t, got, observer.MetricPoolLimit, "what could be read")
	require.EqualValues(t, 1, engine.counts["quipu.gauges.failed server postgres "])
	stop()
	require.NoError(t, devtest.Await(t, "the end of the drain", ran))
	rt.Close()
	require.Nil(t, engine.source, "it is not asked any more")
}
