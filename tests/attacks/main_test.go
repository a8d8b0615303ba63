package attacks

import (
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/workers"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// patience bounds every wait of a test.
const patience = 60 * time.Second

// target is a space on real servers, as its owners run it.
type target struct {
	*world.World
	t *testing.T
}

func newTarget(t *testing.T) *target {
	t.Helper()
	return &target{world.New(t, "shop"), t}
}

// without is a target whose test has a NATS server of its own.
func without(t *testing.T) *target {
	t.Helper()
	return &target{&world.World{T: t, Postgres: world.Database(t, "shop"), Space: "shop"}, t}
}

// open connects a runtime.
func (g *target) open(reg *workers.Registry, change ...func(*quipu.Config)) *quipu.Runtime {
	g.t.Helper()
	cfg := g.Short()
	for _, f := range change {
		f(&cfg)
	}
	if cfg.Workers == nil {
		cfg.Workers = reg
	}
	return g.Open(cfg)
}
