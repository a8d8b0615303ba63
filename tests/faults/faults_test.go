package faults

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/fault"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/world"
)

// TestMain: the test binary is also the worker process of the cells: with workerEnv set it works
// until it is stopped.
func TestMain(m *testing.M) {
	world.Child(workerEnv, work)
	devtest.Main(m)
}

// lane has servers of its own, on which cells play one after another.
type lane struct {
	pg    *dev.Postgres
	nats  *dev.NATS
	url   string // of NATS, which keeps it over a restart
	other string // the worker of another build, if there is one
	disk  string // where the cluster is, if that can be filled
	cells int    // played so far
}

func newLane(t *testing.T) *lane {
	return newLaneOn(t, devtest.Cluster(t, dev.PostgresOptions{}))
}

func newLaneOn(t *testing.T, pg *dev.Postgres) *lane {
	require.True(t, fault.Enabled, "a cell needs fault points: go test -race, or -tags faults")
	nats := devtest.NATS(t)
	return &lane{pg: pg, nats: nats, url: nats.URL()}
}
