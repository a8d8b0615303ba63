package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// diskSize of a small disk holds the cluster, its log, and a few cells.
const diskSize = "192m"

// newSmallLane is a lane whose Postgres lives on a small disk in memory. The error
// says why there can be none: mounting one takes root, and a kernel that lets it.
func newSmallLane(t *testing.T) (*lane, error) {
	dir, err := os.MkdirTemp("", "quipu-faults-disk-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+diskSize+",mode=755"); err != nil {
		return nil, fmt.Errorf("mount a tmpfs: %w", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	l := newLaneOn(t, devtest.ClusterIn(t, dir, dev.PostgresOptions{Settings: map[string]string{"min_wal_size": "32MB", "max_wal_size": "48MB"}}))
	l.disk = dir
	return l, nil
}

// fillDisk fills the disk, lets the victim meet that, and makes room again. The
// server may have died of it: then it is started again.
func (c *cell) fillDisk() {
	filler := filepath.Join(c.lane.disk, "filler")
	db, err := pgx.Connect(c.t.Context(), c.dsn) // there may be no room for a new one
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = os.Remove(filler) }) // a cell that fails leaves room to the next
	fill(c.t, filler)
	c.refused(db)
	c.control.release()
	time.Sleep(away) // the fault itself: so long there is no room
	require.NoError(c.t, os.Remove(filler))
	if db, err = pgx.Connect(c.t.Context(), c.dsn); err == nil {
		require.NoError(c.t, db.Close(c.t.Context()))
		return
	}
	c.note = "the server died of it"
	require.NoError(c.t, c.lane.pg.Restart(c.t.Context(), dev.StopImmediate))
}

// refused sees that the database has no room for a write: the fault is there. The
// connection is closed.
func (c *cell) refused(db *pgx.Conn) {
	defer db.Close(context.Background())
	_, err := db.Exec(c.t.Context(), `CREATE TABLE room AS SELECT repeat(n::text, 100) FROM generate_series(1, 100000) n`)
	require.Error(c.t, err, "there is room")
}

// fill writes a file until the disk is full.
func fill(t *testing.T, name string) {
	f, err := os.Create(name)
	require.NoError(t, err)
	defer f.Close()
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		if _, err = f.Write(block); err != nil {
			require.True(t, errors.Is(err, syscall.ENOSPC), "%v", err)
			block = block[:len(block)/2]
		}
	}
}
