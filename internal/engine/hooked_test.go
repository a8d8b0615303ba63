package engine

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
)

// over is a loop of a committer over memory, whose store asks the hooks; it carries what the test
// gives it.
func over(t *testing.T, h *hooked, cfg Config) (*loop, *memstore.Store) {
	t.Helper()
	st := memstore.New(memstore.Config{Space: "test"})
	h.Engine, cfg.Store, cfg.Bus, cfg.Space = st, h, membus.New(membus.Config{}), "test"
	all, err := NewCommitter(t.Context(), cfg)
	require.NoError(t, err)
	l := &loop{Committer: all, policy: policyWait}
	t.Cleanup(func() {
		l.close()
		require.NoError(t, cfg.Bus.Close())
	})
	return l, st
}

// hooked is a store that asks a test before each load and commit of a committer, and shows it what
// was loaded. An error of a hook is the call's; a hook that is nil does nothing.
type hooked struct {
	store.Engine
	load   func(wants []store.Want) error
	loaded func(l *store.Loaded)
	commit func(plans []store.Chained) error
	held   func(plans []store.Chained, patient bool) error // after commit: what another transaction holds
}

func (h *hooked) Committer(ctx context.Context, patient bool) (store.Committer, error) {
	c, err := h.Engine.Committer(ctx, patient)
	return &hookedCommitter{c, h, patient}, err
}

type hookedCommitter struct {
	store.Committer
	*hooked
	patient bool
}

func (c *hookedCommitter) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	if c.load != nil {
		if err := c.load(wants); err != nil {
			return nil, err
		}
	}
	l, err := c.Committer.Load(ctx, wants, wait)
	if err == nil && c.loaded != nil {
		c.loaded(l)
	}
	return l, err
}

func (c *hookedCommitter) Commit(ctx context.Context, plans []store.Chained) error {
	if c.commit != nil {
		if err := c.commit(plans); err != nil {
			_ = c.Rollback(ctx)
			return err
		}
	}
	if c.held != nil {
		if err := c.held(plans, c.patient); err != nil {
			_ = c.Rollback(ctx)
			return err
		}
	}
	return c.Committer.Commit(ctx, plans)
}

// lines are the lines that were logged.
type lines struct{ all []string }

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Write implements io.Writer for a handler, which calls it one line at a time.
func (l *lines) Write(b []byte) (int, error) {
	l.all = append(l.all, strings.TrimSpace(string(b)))
	return len(b), nil
}

// lettersOf are all dead letters of a store.
func lettersOf(t *testing.T, st *memstore.Store) []store.DeadView {
	t.Helper()
	all, err := st.DeadLetters(t.Context(), store.DeadFilter{All: true, Limit: 10})
	require.NoError(t, err)
	return all
}

// inBubble runs a test beside others, on a clock that moves when all goroutines wait.
func inBubble(t *testing.T, run func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, run)
}
