package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/gobuild"
)

// worker is the program under test, built once.
var worker string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "quipu-faults-")
	if err == nil {
		worker = filepath.Join(dir, "worker")
		err = gobuild.Build("", worker, "-tags", "faults", "./worker")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := devtest.Run(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// lane has servers of its own, on which cells play one after another.
type lane struct {
	pg      *dev.Postgres
	nats    *dev.NATS
	url     string // of NATS, which keeps it over a restart
	program string
	other   string // the worker of another build, if there is one
	disk    string // where the cluster is, if that can be filled
	cells   int    // played so far
}

func newLane(t *testing.T) *lane {
	return newLaneOn(t, devtest.Cluster(t, dev.PostgresOptions{}))
}

func newLaneOn(t *testing.T, pg *dev.Postgres) *lane {
	nats := devtest.NATS(t)
	return &lane{pg: pg, nats: nats, url: nats.URL(), program: worker}
}
