package attacks

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/workers"
)

// S1: a key was stolen while a request waits for a worker, and the operators rotate at once. The
// request under the old key is refused; its row sends it again under the new one, and it runs once.
func TestABacklogIsOlderThanTheKey(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	engine := func() (*quipu.Runtime, func()) {
		rt := g.open(nil, func(c *quipu.Config) { c.Roles = []quipu.Role{quipu.RoleEngine} })
		g.Deploy(rt, payFlow)
		return rt, g.Run(rt)
	}
	rt, stop := engine()
	job, err := rt.Start(ctx, "pay", "till", 7)
	require.NoError(t, err)
	nc, err := natsgo.Connect(g.NATS.URL())
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		work, err := js.Stream(ctx, "QUIPU_shop_WORK")
		return err == nil && work.CachedInfo().State.Msgs > 0
	}, patience, 10*time.Millisecond)
	stop()
	rt.Close()

	_, err = g.open(nil).Keys().Rotate(ctx, true)
	require.NoError(t, err)
	var runs atomic.Int64
	reg := workers.New()
	workers.Handle(reg, "pay.charge", func(_ context.Context, amount int) (int, error) {
		runs.Add(1)
		return amount, nil
	})
	refused := &counted{metric: observer.MetricRefused}
	g.Run(g.open(reg, func(c *quipu.Config) { c.Roles, c.Observer = []quipu.Role{quipu.RoleWorkers}, refused }))
	rt, _ = engine()
	out, err := quipu.WaitAs[int](ctx, rt, job)
	require.NoError(t, err)
	require.Equal(t, 7, out)
	require.Positive(t, refused.n.Load())
	require.EqualValues(t, 1, runs.Load())
}
