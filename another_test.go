package quipu

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// S13: a process that is told to end while it looks which database this is has nothing to warn of.
func TestTheLookOfAProcessThatEndsIsSilent(t *testing.T) {
	t.Parallel()
	var log devtest.Log
	rt, err := Open(t.Context(), Config{
		Postgres: devtest.Postgres(t), NATS: devtest.NATS(t).URL(), Roles: []Role{RoleEngine}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	defer rt.Close()
	require.Eventually(t, func() bool { return rt.bus.Answers(t.Context()) == nil }, devtest.Patience, 5*time.Millisecond)
	ended, end := context.WithCancel(t.Context())
	end()
	w := &watcher{rt: rt}
	w.note(ended, w.look(ended))
	require.NotContains(t, log.String(), "level=WARN")
}
