package engine

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal/memory"
	"github.com/quipu-journal/quipu/journal/store"
)

// lines are the lines that were logged.
type lines struct{ all []string }

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Write implements io.Writer for a handler, which calls it one line at a time.
func (l *lines) Write(b []byte) (int, error) {
	l.all = append(l.all, strings.TrimSpace(string(b)))
	return len(b), nil
}

// lettersOf are all dead letters of a store.
func lettersOf(t *testing.T, st *memory.Store) []store.DeadView {
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
