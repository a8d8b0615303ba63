package engine

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal/store"
)

// full is a store whose Extend gives the listed answers, and then ends the test.
type full struct {
	store.Store
	answers []error
	end     context.CancelFunc
}

func (s *full) Extend(context.Context) error {
	if len(s.answers) == 1 {
		s.end()
	}
	err := s.answers[0]
	s.answers = s.answers[1:]
	return err
}

// W10: every engine makes room for new jobs. It logs once that it cannot, and once that it can
// again.
func TestEngineMakesRoom(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	missing := store.ErrPartition
	st := &full{answers: []error{nil, missing, missing, nil, nil, nil}, end: cancel}
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	e := &Engine{cfg: Config{Store: st, Logger: log, Jitter: func(time.Duration) time.Duration { return 0 }}}
	chores := e.chores()
	at := slices.IndexFunc(chores, func(c *chore) bool { return c.name == "making room for new jobs" })
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, time.Minute, chores[at].every)
	chores[at].every = time.Millisecond
	require.NoError(t, chores[at].run(ctx))
	require.Empty(t, st.answers)
	require.Equal(t, 1, strings.Count(said.String(), "run `quipu migrate`"), said.String())
	require.Equal(t, 1, strings.Count(said.String(), "succeeds again"), said.String())
}
