package memstore_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// faults fails the given calls, once each.
type faults struct {
	mu   sync.Mutex
	next map[string]bool
	seen []string
}

func (f *faults) fail(op string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, op)
	if f.next[op] {
		delete(f.next, op)
		return errFault
	}
	return nil
}

func (f *faults) on(op string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = map[string]bool{op: true}
}

func faulty() (*faults, *memstore.Store) {
	f := &faults{}
	return f, memstore.New(memstore.Config{Fault: f.fail})
}

// TestFaultOfACommit: after a fault before it nothing was written, after one behind it everything
// (J4). The job is free again (C10).
func TestFaultOfACommit(t *testing.T) {
	t.Parallel()
	for op, is := range map[string]error{"commit": store.ErrUnavailable, "commit.done": store.ErrUnknown} {
		f, s := faulty()
		id := start(t, s, "k")
		c, d := open(t, s), open(t, s)
		plan := touch(load(t, c, id).States[id])
		f.on(op)
		err := c.Commit(t.Context(), []store.Chained{plan})
		require.ErrorIs(t, err, is)
		require.ErrorIs(t, err, errFault)
		l, err := d.Load(t.Context(), []store.Want{{Job: id}}, false)
		require.NoError(t, err)
		require.Empty(t, l.Busy)
		done := op == "commit.done"
		_, seq := c.Session()
		require.Equal(t, done, seq == 1)
		require.Equal(t, done, l.States[id].Job.Head.Seq == 2)
		require.Equal(t, done, errors.Is(d.Commit(t.Context(), []store.Chained{plan}), store.ErrLost), "done again, it finds its own digits")
	}
}

// TestFaultPausesACommitter: a process that hangs in its commit holds only its own jobs.
func TestFaultPausesACommitter(t *testing.T) {
	t.Parallel()
	gate, reached := make(chan struct{}), make(chan struct{})
	var stops atomic.Bool
	s := memstore.New(memstore.Config{Fault: func(op string) error {
		if op == "commit" && stops.CompareAndSwap(true, false) {
			close(reached)
			<-gate
		}
		return nil
	}})
	id, other := start(t, s, "k"), start(t, s, "other")
	c, d := open(t, s), open(t, s)
	l := load(t, c, id)
	done := make(chan error)
	stops.Store(true)
	go func() { done <- c.Commit(t.Context(), []store.Chained{touch(l.States[id])}) }()
	<-reached
	l2, err := d.Load(t.Context(), []store.Want{{Job: id}, {Job: other}}, false)
	require.NoError(t, err)
	require.True(t, l2.Busy[id])
	require.NoError(t, d.Commit(t.Context(), []store.Chained{touch(l2.States[other])}))
	close(gate)
	require.NoError(t, <-done)
}

// calls are the calls that write, and those that the engine reads by.
func calls(t *testing.T, s *memstore.Store, id journal.JobID) map[string]func() error {
	ctx := t.Context()
	return map[string]func() error{
		"deploy": func() error {
			_, err := s.Deploy(ctx, store.Deployment{Ref: flowRef, Canonical: []byte(`{}`)})
			return err
		},
		"activate":      func() error { return s.Activate(ctx, flowRef.Name, flowRef.Version, "") },
		"claim":         func() error { _, err := s.Claim(ctx, nil); return err },
		"late":          func() error { _, err := s.Late(ctx, journal.MessageRequest, 1); return err },
		"prune":         func() error { _, err := s.Prune(ctx, 1); return err },
		"committer":     func() error { _, err := s.Committer(ctx, true); return err },
		"due":           func() error { _, _, err := s.Due(ctx, 1); return err },
		"lease":         func() error { _, err := s.Lease(ctx, id, id.Start(), 1, "w", 1); return err },
		"keep":          func() error { _, err := s.Keep(ctx, store.Lease{Job: id}); return err },
		"open session":  func() error { _, err := s.OpenSession(ctx, store.Process{Name: "own", Lease: time.Hour}); return err },
		"hand back":     func() error { return s.HandBack(ctx, store.Lease{Job: id}) },
		"expire":        func() error { _, err := s.Expire(ctx, 1); return err },
		"schedules":     func() error { _, err := s.Schedules(ctx); return err },
		"mark schedule": func() error { return s.MarkSchedule(ctx, flowRef.Name, 0, 1) },
	}
}

// TestFaultsOfEveryCall: a fault before a call leaves nothing done, one after it everything.
func TestFaultsOfEveryCall(t *testing.T) {
	t.Parallel()
	f, s := faulty()
	calls := calls(t, s, start(t, s, "k"))
	for op, call := range calls {
		f.on(op)
		err := call()
		require.ErrorIs(t, err, store.ErrUnavailable, op)
		require.ErrorIs(t, err, errFault, op)
	}
	_, err := s.Flow(t.Context(), flowRef.Name, flowRef.Version)
	require.ErrorIs(t, err, store.ErrNotFound)
	for _, op := range []string{"deploy", "activate", "claim", "prune", "expire"} {
		f.on(op + ".done")
		require.ErrorIs(t, calls[op](), store.ErrUnknown, op)
	}
	_, err = s.Flow(t.Context(), flowRef.Name, flowRef.Version)
	require.NoError(t, err)
	require.Contains(t, strings.Join(f.seen, " "), "claim claim.done")
}
