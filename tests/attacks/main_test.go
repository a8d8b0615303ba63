package attacks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/workers"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// patience bounds every wait of a test.
const patience = 60 * time.Second

// target is a space on real servers, as its owners run it.
type target struct {
	t    *testing.T
	dsn  string
	nats *dev.NATS // nil: the test has a server of its own
}

func newTarget(t *testing.T) *target {
	t.Helper()
	return &target{t: t, dsn: devtest.Postgres(t), nats: devtest.NATS(t)}
}

// open connects a runtime, with spans short enough for a test to see a recovery.
func (g *target) open(reg *workers.Registry, change ...func(*quipu.Config)) *quipu.Runtime {
	g.t.Helper()
	cfg := quipu.Config{
		Postgres: g.dsn, Space: "shop", Workers: reg,
		Resend: 400 * time.Millisecond, Lease: 3 * time.Second, AckWait: 3 * time.Second,
		Logger: devtest.Logger(g.t),
	}
	if g.nats != nil {
		cfg.NATS = g.nats.URL()
	}
	for _, f := range change {
		f(&cfg)
	}
	rt, err := quipu.Open(g.t.Context(), cfg)
	require.NoError(g.t, err)
	g.t.Cleanup(rt.Close)
	return rt
}

// run works with the runtime until stop, or the test's end.
func (g *target) run(rt *quipu.Runtime) (stop func()) {
	g.t.Helper()
	stop = devtest.Work(g.t, rt.Run)
	devtest.Await(g.t, "a runtime that works", rt.Ready())
	return stop
}

func (g *target) deploy(rt *quipu.Runtime, yaml string) {
	g.t.Helper()
	f, err := flow.Parse("attack.yaml", []byte(yaml))
	require.NoError(g.t, err)
	require.NoError(g.t, rt.Deploy(g.t.Context(), f))
}
