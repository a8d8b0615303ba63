package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// hears listens for announcements until the test ends.
func hears(t *testing.T, s *Store) <-chan struct{} {
	t.Helper()
	told := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Announced(ctx, func() { told <- struct{}{} }) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, devtest.Await(t, "the end of the listener", ended), context.Canceled)
	})
	devtest.Await(t, "the listener", told)
	return told
}

// again lets the store announce at once.
func (s *Store) again() { s.announced.Store(0) }

// W9: what a transaction leaves due is announced when it commits, and not before. A process
// announces once a second.
func TestAnnounced(t *testing.T) {
	t.Parallel()
	s := open(t)
	told := hears(t, s)
	user := user(t, s)
	tx := transaction(t, user)
	startIn(t, s, tx, "a")
	require.NoError(t, tx.Rollback(t.Context()))
	s.again()
	tx = transaction(t, user)
	startIn(t, s, tx, "b")
	require.Empty(t, told)
	require.NoError(t, tx.Commit(t.Context()))
	devtest.Await(t, "an announcement", told)
	s.announced.Store(time.Now().Add(time.Hour).UnixNano())
	startJobs(t, s, "c")
	s.again()
	startJobs(t, s, "d")
	devtest.Await(t, "an announcement", told)
	require.Never(t, func() bool { return len(told) > 0 }, 100*time.Millisecond, 10*time.Millisecond, "one of the two")
}

// W8, W9: what a dead session leaves and what is handed back is announced.
func TestAnnouncedByTheEndOfASession(t *testing.T) {
	t.Parallel()
	s := open(t)
	row := request(t, s, startJobs(t, s, "k")[0])
	x := must(s.OpenSession(t.Context(), store.Process{Name: "w", Lease: time.Hour}))(t)
	told := hears(t, s)
	l := must(s.Lease(t.Context(), row.Job, row.GUID, 1, "w", x.ID()))(t)
	s.again()
	require.NoError(t, s.HandBack(t.Context(), l))
	devtest.Await(t, "an announcement", told)
	must(s.Lease(t.Context(), row.Job, row.GUID, 1, "w", x.ID()))(t)
	require.Empty(t, told)
	require.NoError(t, x.End(t.Context()))
	devtest.Await(t, "an announcement", told)
}

// W9: a listener whose connection ends gets an error.
func TestAnnouncementsEndWithTheirConnection(t *testing.T) {
	t.Parallel()
	s := open(t)
	ended := make(chan error, 1)
	listening := make(chan struct{})
	go func() { ended <- s.Announced(t.Context(), func() { close(listening) }) }()
	devtest.Await(t, "the listener", listening)
	require.NoError(t, s.run(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND datname = current_database()`))
	require.Error(t, devtest.Await(t, "the end of the listener", ended))
}
